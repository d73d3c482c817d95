// What scrolls can be reached by the keyboard, as WCAG 2.1.1 asks; what fits its frame is no stop of the tab key.
function mark() {
  for (const part of document.querySelectorAll("article pre, .table-wrapper, article div.math, .cell_output .text_html"))
    if (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
}
addEventListener("load", mark);
addEventListener("resize", mark);
