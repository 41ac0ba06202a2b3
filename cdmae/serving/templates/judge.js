// The keys 0 to 3, b and s press the buttons that name them.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=hidden]), textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const button = document.querySelector(`#judge button[data-key="${CSS.escape(event.key)}"]`);
  if (button) button.click();
});
