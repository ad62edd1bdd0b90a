/** Exit codes; part of the documented contract. */
export const exit = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  damaged: 5,
  accepted: 6,
  interrupted: 130,
} as const;
