// Comfort only: everything works without this file.
"use strict";

// A step keeps the place on the page.
const PLACE = "flexgroup-lab-place";
addEventListener("pagehide", () => sessionStorage.setItem(PLACE, `${location.pathname} ${scrollY}`));
const [path, place] = (sessionStorage.getItem(PLACE) || "").split(" ");
if (path === location.pathname && !location.hash) scrollTo(0, Number(place) || 0);

// Arrow keys go along the run, unless something is being typed in or scrolled.
addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest("input, select, textarea, .scroll")) return;
  const link = document.querySelector(`a[data-key="${event.key}"]`);
  if (link) link.click();
});

// A file is read into the field for its text, so that it never has to be uploaded as a file.
for (const file of document.querySelectorAll("input[type=file][data-into]")) {
  file.closest("label").hidden = false;
  file.addEventListener("change", async () => {
    document.getElementById(file.dataset.into).value = await file.files[0].text();
  });
}

// A search tells how far it is; when it has ended, the page is loaded for the last time.
const search = document.querySelector("[data-search]");
if (search) {
  const look = async () => {
    const told = await (await fetch(search.dataset.search)).json();
    search.textContent = told.words;
    if (told.over) location.reload();
    else setTimeout(look, 500);
  };
  setTimeout(look, 300);
}

// A live page: parts that have changed come as they do; if there are others than before, it is
// loaded anew. What acts is sent without leaving the page.
const live = document.querySelector("[data-live]");
if (live) {
  const parts = new Map([...document.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  const fresh = document.createElement("template");
  const events = new EventSource(live.dataset.live);
  events.addEventListener("message", (event) => {
    const { all, changed } = JSON.parse(event.data);
    if (all.length !== parts.size || all.some((name) => !parts.has(name))) {
      events.close();
      location.reload();
      return;
    }
    for (const [name, markup] of Object.entries(changed)) {
      const part = parts.get(name);
      fresh.innerHTML = markup;
      if (part.innerHTML !== fresh.innerHTML) part.innerHTML = markup;  // or a focus would be lost
    }
  });
  addEventListener("pagehide", () => events.close());
  addEventListener("submit", async (event) => {
    if (!("quiet" in event.target.dataset)) return;
    event.preventDefault();
    const form = event.target, fields = new URLSearchParams(new FormData(form, event.submitter));
    const answer = await fetch(form.action, { method: "POST", body: fields, redirect: "manual" });
    const refusal = document.getElementById("refusal");
    refusal.textContent = "";
    if (answer.type !== "opaqueredirect") {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      refusal.textContent = page.querySelector("main p").textContent;
    } else for (const text of form.querySelectorAll("input[name=text]")) text.value = "";
  });
}
