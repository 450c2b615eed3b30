// Closed loops of clients that put values into etcd, with its own client for Go.
//
//	etcd_loops ENDPOINTS LOOPS PAYLOAD WARM_UP_SECONDS SECONDS
//
// Each loop puts a value under a key of its own, and the next one when that is confirmed. Every
// client has a connection of its own to one of the nodes, in turn. At the end one line of JSON tells
// what was confirmed within the seconds that count, with the latencies in microseconds.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
)

func number(text string) float64 {
	found, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return found
}

func main() {
	endpoints := strings.Split(os.Args[1], ",")
	loops := int(number(os.Args[2]))
	value := strings.Repeat("x", int(number(os.Args[3])))
	begin := time.Now().Add(time.Duration(number(os.Args[4]) * 1e9))
	end := begin.Add(time.Duration(number(os.Args[5]) * 1e9))
	latencies := make([]map[int64]int, loops)
	var running sync.WaitGroup
	for loop := 0; loop < loops; loop++ {
		client, err := clientv3.New(clientv3.Config{
			Endpoints:   []string{endpoints[loop%len(endpoints)]},
			DialTimeout: 10 * time.Second,
		})
		if err != nil {
			panic(err)
		}
		seen := make(map[int64]int)
		latencies[loop] = seen
		running.Add(1)
		go func(key string) {
			defer running.Done()
			for sent := time.Now(); sent.Before(end); {
				if _, err := client.Put(context.Background(), key, value); err != nil {
					panic(err)
				}
				now := time.Now()
				if now.After(begin) && now.Before(end) {
					seen[now.Sub(sent).Microseconds()]++
				}
				sent = now
			}
		}(fmt.Sprintf("loop-%d", loop))
	}
	running.Wait()
	total := make(map[int64]int)
	completed := 0
	for _, seen := range latencies {
		for latency, count := range seen {
			total[latency] += count
			completed += count
		}
	}
	told, err := json.Marshal(map[string]interface{}{
		"seconds": end.Sub(begin).Seconds(), "completed": completed, "latencies": total,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(told))
}
