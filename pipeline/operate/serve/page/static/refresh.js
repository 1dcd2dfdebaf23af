// Asks for the same page again and puts it in place. Without JavaScript the page stays as it was loaded.
"use strict";
(() => {
  const EVERY_MS = 10000;
  const EVERY = `refresh every ${EVERY_MS / 1000} s`;
  const KEY = "lagwise-refresh";
  const header = document.querySelector("header");
  const label = document.createElement("label");
  const box = document.createElement("input");
  const words = document.createElement("span");
  const says = text => { words.textContent = ` ${text}`; };
  box.type = "checkbox";
  try { box.checked = sessionStorage.getItem(KEY) !== "off"; } catch { box.checked = true; }
  box.addEventListener("change", () => {
    says(EVERY);
    try { sessionStorage.setItem(KEY, box.checked ? "on" : "off"); } catch { /* holds for this page alone */ }
  });
  says(EVERY);
  label.className = "refresh";
  label.append(box, words);
  header.append(label);

  // Whoever types, selects or tabs there keeps what is there.
  const isChosen = select =>
    select.value !== ([...select.options].find(one => one.defaultSelected) ?? select.options[0]).value;
  const isInUse = main =>
    main.querySelector(":focus-visible") !== null || String(getSelection()) !== "" ||
    [...main.querySelectorAll("form input:not([type=hidden])")].some(one => one.value !== one.defaultValue) ||
    [...main.querySelectorAll("form select")].some(isChosen);

  const replace = (main, next) => {
    const open = new Map([...main.querySelectorAll("details")].map(one => [one.id, one.open]));
    const left = [...main.querySelectorAll(".scroll")].map(one => one.scrollLeft);
    const fresh = next.querySelector("main");
    main.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = left[at] ?? 0; });
    fresh.querySelectorAll("details").forEach(one => { one.open = open.get(one.id) ?? one.open; });
  };

  // An age that stands there would pass for that of now; the time before it stays true.
  const stale = () => header.querySelectorAll(".ago").forEach(one => { one.textContent = "; not refreshed since"; });

  const refresh = async () => {
    const main = document.querySelector("main");
    if (!box.checked || document.hidden) return stale();
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(EVERY_MS - 1000) });
      if (!answer.ok) throw new Error(`lagwise serve answers ${answer.status}`);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (isInUse(main)) {
        stale();
        return says("refresh waits while you use the page");
      }
      replace(main, next);
      const age = header.querySelector(".age"), fresh = next.querySelector("header .age");
      if (age && fresh) age.replaceWith(fresh);
      else stale();
      says(EVERY);
    } catch (error) {
      stale();
      says(`refresh failed: ${error.message}`);
    }
  };
  setInterval(refresh, EVERY_MS);
})();
