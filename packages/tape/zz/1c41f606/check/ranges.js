                                             

/** Positions, both ends included. Lists of ranges here are ascending, and no two of them meet. */
                                                  

/** How many positions ranges have. */
export function sizeOf(ranges                  )         {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** The positions of either list. */
export function united(one                  , other                  )                   {
  const all               = [];
  for (const [from, to] of [...one, ...other].sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
  }
  return all;
}

/** The positions of the first list that the second does not have. */
export function without(ranges                  , others                  )                   {
  return ranges.flatMap(([first, last]) => {
    const left          = [];
    let from = first;
    for (const [start, end] of others) {
      if (end < from) continue;
      if (start > last) break;
      if (start > from) left.push([from, start - 1]);
      from = end + 1;
    }
    return from <= last ? [...left, [from, last]         ] : left;
  });
}
