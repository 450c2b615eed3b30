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
