// The keys 0 to 3, b and s press the buttons that name them, whatever letters the digit keys type.
let pressed = false;
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=hidden]), textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || pressed) return;
  const digit = /^(?:Digit|Numpad)([0-3])$/.exec(event.code);
  const key = digit && !event.shiftKey ? digit[1] : event.key.toLowerCase();
  const button = document.querySelector(`#judge button[data-key="${CSS.escape(key)}"]`);
  if (!button) return;
  pressed = true; // a second key must not grade a passage that is not shown yet
  button.click();
});
window.addEventListener("pageshow", () => { pressed = false; });
