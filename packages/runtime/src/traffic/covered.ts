/** Replaces what is a secret in a value. What has none is returned as it is. */
export type Cover = <T>(value: T) => T;

/** A text in a value, which can be replaced. */
interface Place {
  readonly holder: Record<string, unknown>;
  readonly name: string;
}

/**
 * The pieces of an answer without secrets, also without those that came in several pieces: of texts that have the same
 * place in each piece and have a secret once they are joined, the first one has them all.
 */
export function coveredPieces(pieces: readonly object[], cover: Cover): readonly object[] {
  const own = pieces.map((piece) => asJson(cover(piece)));
  const places = new Map<string, Place[]>();
  for (const piece of own) collect(piece, '', places);
  for (const same of places.values()) {
    if (same.length < 2) continue;
    const joined = same.map(({ holder, name }) => String(holder[name])).join('');
    const without = cover(joined);
    if (without === joined) continue;
    for (const [i, { holder, name }] of same.entries()) holder[name] = i === 0 ? without : '';
  }
  return own;
}

/** A copy of its own, which can be changed. */
function asJson(piece: object): object {
  try {
    return JSON.parse(JSON.stringify(piece));
  } catch (error) {
    return { left_out: String(error) };
  }
}

/** Collects the texts of a value by their places. */
function collect(value: object, path: string, places: Map<string, Place[]>): void {
  const holder = value as Record<string, unknown>;
  for (const [name, inner] of Object.entries(holder)) {
    const at = `${path}/${name}`;
    if (typeof inner === 'object' && inner !== null) collect(inner, at, places);
    else if (typeof inner === 'string') {
      const same = places.get(at);
      if (same === undefined) places.set(at, [{ holder, name }]);
      else same.push({ holder, name });
    }
  }
}
