for (const table of document.querySelectorAll("table.sortable"))
  for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
    head.tabIndex = 0;
    const value = row => row.cells[at].textContent.trim().replace("−", "-").replace("< ", "");
    const sort = () => {
      const rows = [...table.tBodies[0].rows];
      const isText = rows.every(row => isNaN(parseFloat(value(row))));
      const down = head.ariaSort ? head.ariaSort === "ascending" : !isText;
      for (const other of head.parentNode.cells) other.ariaSort = null;
      head.ariaSort = down ? "descending" : "ascending";
      const order = (a, b) => {
        const [x, y] = [parseFloat(a.replaceAll(",", "")), parseFloat(b.replaceAll(",", ""))];
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || (down ? b.localeCompare(a) : a.localeCompare(b));
        return down ? y - x : x - y;
      };
      table.tBodies[0].append(...rows.sort((a, b) => order(value(a), value(b))));
    };
    head.onclick = sort;
    head.onkeydown = event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();  // Space would scroll
      sort();
    };
  }
