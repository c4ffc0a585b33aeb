// Dropping a file and showing its progress; the forms work without this too.
"use strict";

for (const form of document.querySelectorAll("form[data-upload]")) {
  const input = form.querySelector("input[type=file]");
  const drop = form.querySelector(".drop");
  const chosen = form.querySelector("[data-chosen]");
  const bar = form.querySelector("progress");
  const error = form.querySelector("[data-error]");
  const button = form.querySelector("button");

  const show = () => {
    if (input.files.length) chosen.textContent = input.files[0].name;
    error.hidden = true;
  };
  input.addEventListener("change", show);
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  }
  drop.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; show(); }
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const request = new XMLHttpRequest();
    const fail = (message) => {
      error.textContent = message;
      error.hidden = false;
      bar.hidden = true;
      button.disabled = false;
    };
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (sent) => {
      if (sent.lengthComputable) bar.value = sent.loaded / sent.total;
      if (sent.loaded === sent.total) { bar.removeAttribute("value"); chosen.textContent = "Checking and scoring …"; }
    });
    request.addEventListener("load", () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* not from the board itself */ }
      if (request.status < 300 && answer.path) window.location.assign(answer.path);
      else fail(answer.error || `The server answered ${request.status}.`);
    });
    request.addEventListener("error", () => fail("The connection broke off; try again."));
    bar.hidden = false;
    button.disabled = true;
    error.hidden = true;
    request.send(new FormData(form));
  });
}
