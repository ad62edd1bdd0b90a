/** A clock that begins at a fixed time and moves on by `stepMs` each time it is read, or by hand. */
export interface Clock {
  readonly now: () => number;
  advance(ms: number): void;
}

export function fixedClock({ start = Date.UTC(2026, 10, 21, 10), stepMs = 0 } = {}): Clock {
  let time = start - stepMs;
  return {
    now: () => {
      time += stepMs;
      return time;
    },
    advance: (ms) => {
      time += ms;
    },
  };
}
