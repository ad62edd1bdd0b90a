                                      

/** How many causes of an error are masked. */
const causesMax = 10;

/**
 * Replaces the secrets in an error and its causes: in messages, stacks and fields, such as the body of a response. The
 * error stays the same object, so that its class says what it is. Returns it, or the masked value that was thrown.
 */
export function maskError(error         , mask                  )          {
  if (mask === undefined) return error;
  if (!(error instanceof Error)) return mask.value(error);
  let current          = error;
  for (let i = 0; i < causesMax && current instanceof Error; i += 1) {
    for (const name of new Set(['message', 'stack', ...Object.getOwnPropertyNames(current)])) {
      const value          = Reflect.get(current, name);
      if (value instanceof Error) continue;
      const masked = mask.value(value);
      if (masked !== value) Reflect.set(current, name, masked);
    }
    current = current.cause;
  }
  return error;
}
