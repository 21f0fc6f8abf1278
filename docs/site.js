// Boxes that scroll must be reachable with the keyboard.
document$.subscribe(() =>
  requestAnimationFrame(() => {
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .output")) box.tabIndex = 0
  })
)
