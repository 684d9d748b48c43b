// What needs a script: copying, keys, and errors of partial updates. Every page works without.
"use strict";

document.documentElement.classList.add("js");

const keys = document.getElementById("keys");
const find = document.getElementById("find");
const keysOn = document.getElementById("keys-on");
const toasts = document.getElementById("toasts");

// Plain http has no clipboard API, and inner networks often have only that.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy !== undefined) {
    await copy(button.dataset.copy);
    button.classList.add("done");
    button.title = "Copied";
    setTimeout(() => {
      button.classList.remove("done");
      button.title = "Copy";
    }, 1500);
  } else if (button.dataset.keys !== undefined) {
    keys.showModal();
  } else if (button.dataset.close !== undefined) {
    button.closest(".toast").remove();
  }
});

// The address may have changed since the page was served.
document.querySelector("form.theme").addEventListener("submit", (event) => {
  event.target.elements.back.value = location.pathname + location.search;
});

// j and k move the focus between the rows' own links, so that Enter opens as it always does.
function move(step) {
  const rows = [...document.querySelectorAll("table.rows a.go")];
  if (rows.length === 0) return;
  const here = document.activeElement.closest("tr");
  const at = rows.findIndex((link) => link.closest("tr") === here);
  const to = at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step;
  rows[Math.min(Math.max(to, 0), rows.length - 1)].focus();
}

// The filter form lies over the list: it must not cover what has the focus.
function closeFilters() {
  const filters = document.querySelector("details.filters[open]:not(.stay)");
  if (filters) filters.open = false;
  return filters;
}
document.addEventListener("focusin", (event) => {
  if (!event.target.closest("details.filters")) closeFilters();
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest("details.filters")) closeFilters();
});

// Single keys get in the way of speech input, so they can be turned off.
keysOn.checked = localStorage.getItem("plimsoll-keys") !== "off";
keysOn.addEventListener("change", () => {
  localStorage.setItem("plimsoll-keys", keysOn.checked ? "on" : "off");
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && event.target === find) return find.blur();
  if (event.key === "Escape" && !keys.open) return closeFilters()?.querySelector("summary").focus();
  if (typing || keys.open || !keysOn.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    "/": () => find.focus(),
    "?": () => keys.showModal(),
    j: () => move(1),
    k: () => move(-1),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// The link that was followed is gone with the old list: go on at the new one, whose name says
// how many runs it holds.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id === "list") document.getElementById("results")?.focus({ preventScroll: true });
});

// The overview refreshes itself: every few seconds while somebody may be looking, seldom while
// hidden. What is on the screen stays until there is something better, and its age is shown.
const live = document.querySelector("[data-live]");
const LIVE_MS = 5000;
const HIDDEN_MS = 60000;
let drawn = performance.now();
let asked = performance.now();
let opened = [];

function setLost(isLost) {
  const note = live.querySelector("[data-lost]");
  if (note) note.hidden = !isLost;
}
function ageText(ms) {
  const s = Math.round(ms / 1000);
  if (s < 90) return `${s} s`;
  return s < 5400 ? `${Math.round(s / 60)} m` : `${Math.round(s / 3600)} h`;
}
if (live) {
  setInterval(() => {
    const now = performance.now();
    const age = live.querySelector("[data-age]");
    if (age) age.textContent = `measured ${ageText(Number(age.dataset.age) + now - drawn)} ago`;
    if (now - asked < (document.hidden ? HIDDEN_MS : LIVE_MS)) return;
    asked = now;
    htmx.trigger(live, "refresh");
  }, 1000);
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== live) return;
    opened = [...live.querySelectorAll("details[open][id]")].map((details) => details.id);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== live) return;
    drawn = performance.now();
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  });
}

// An error of ours says where it wants to be shown; anything else (a proxy's page, no answer at
// all) must not replace what is on the screen.
function lost() {
  const toast = document.createElement("div");
  toast.className = "toast notice is-fail";
  toast.setAttribute("role", "alert");
  toast.innerHTML = "<div><b>No answer</b><p>This page may be out of date.</p></div>";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.dataset.close = "";
  close.textContent = "Close";
  toast.append(close);
  toasts.replaceChildren(toast);
}
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, target, pathInfo } = event.detail;
  if (xhr.status < 400) {
    if (target === live && !xhr.responseText.includes("data-age")) {
      event.detail.shouldSwap = false;
      setLost(true);
    }
    // No page of ours: perhaps a proxy asks who is there. That needs the whole window.
    if (target.id === "list" && !xhr.responseText.includes('id="list"')) {
      event.detail.shouldSwap = false;
      location.assign(pathInfo.requestPath);
    }
    return;
  }
  if (target === live) {
    event.detail.shouldSwap = false;
    return setLost(true);
  }
  if (xhr.getResponseHeader("HX-Retarget") || xhr.status === 422) event.detail.shouldSwap = true;
  else lost();
});
// A page that lives by itself says so in place; a toast every few seconds would help nobody.
const unlessLive = (event) => {
  if (live?.contains(event.target)) setLost(true);
  else lost();
};
document.addEventListener("htmx:sendError", unlessLive);
document.addEventListener("htmx:timeout", unlessLive);
