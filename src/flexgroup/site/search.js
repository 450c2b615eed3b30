"use strict";

// Sections that have all words that are asked for; those with the words in a heading come first.
const MOST = 60;
const asked = new URLSearchParams(location.search).get("q") || "";
const field = document.querySelector("input[type=search]");
const results = document.getElementById("results");
const found = document.getElementById("found");
const pages = document.getElementById("all");
field.value = asked;

const show = (query) => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  results.replaceChildren();
  found.textContent = "";
  pages.hidden = words.length > 0;
  if (!words.length) return;
  const ranked = [];
  for (const [page, anchor, title, heading, text] of SECTIONS) {
    const head = `${title} ${heading}`.toLowerCase(), body = text.toLowerCase();
    if (!words.every((word) => head.includes(word) || body.includes(word))) continue;
    const rank = words.filter((word) => head.includes(word)).length;
    ranked.push({ rank, page, anchor, title, heading, text, at: body.indexOf(words[0]) });
  }
  ranked.sort((one, other) => other.rank - one.rank);
  found.textContent = `${ranked.length} sections have ${words.length > 1 ? "all these words" : "this word"}.`;
  for (const { page, anchor, title, heading, text, at } of ranked.slice(0, MOST)) {
    const item = document.createElement("li"), link = document.createElement("a");
    const quote = document.createElement("p");
    link.href = anchor ? `${page}#${anchor}` : page;
    link.textContent = heading === title ? title : `${title}: ${heading}`;
    const from = Math.max(0, at - 80);
    quote.textContent = `${from ? "… " : ""}${text.slice(from, from + 240)}${text.length > from + 240 ? " …" : ""}`;
    quote.className = "quiet small";
    item.append(link, quote);
    results.append(item);
  }
};

field.addEventListener("input", () => show(field.value));
field.form.addEventListener("submit", (event) => { event.preventDefault(); show(field.value); });
show(asked);
