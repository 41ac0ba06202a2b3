for (const table of document.querySelectorAll("table.sortable"))
  for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
    head.tabIndex = 0;
    const value = row => row.cells[at].textContent.trim().replace("−", "-").replace("< ", "");
    const sort = () => {
      const down = head.ariaSort !== "descending";
      for (const other of head.parentNode.cells) other.ariaSort = null;
      head.ariaSort = down ? "descending" : "ascending";
      const order = (a, b) => {
        const [x, y] = [parseFloat(a.replaceAll(",", "")), parseFloat(b.replaceAll(",", ""))];
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.localeCompare(b);
        return down ? y - x : x - y;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => order(value(a), value(b))));
    };
    head.onclick = sort;
    head.onkeydown = event => event.key === "Enter" && sort();
  }
