import { Refused } from './refuse.ts';

/** Reads the text of a parameter. Throws a text that says what it has to be. */
type Read<T> = (text: string) => T;

/** Parameters of a route: what reads each, and whether it must be there. */
type Parameters = Readonly<Record<string, { readonly read: Read<unknown>; readonly isNeeded: boolean }>>;

/** What a query says. */
type Values<P extends Parameters> = {
  readonly [Name in keyof P as P[Name]['isNeeded'] extends true ? Name : never]: ReturnType<P[Name]['read']>;
} & {
  readonly [Name in keyof P as P[Name]['isNeeded'] extends true ? never : Name]?: ReturnType<P[Name]['read']>;
};

/** The longest text, in characters: names of sessions are shorter. */
const textMax = 1_000;

export function needed<T>(read: Read<T>): { readonly read: Read<T>; readonly isNeeded: true } {
  return { read, isNeeded: true };
}

export function optional<T>(read: Read<T>): { readonly read: Read<T>; readonly isNeeded: false } {
  return { read, isNeeded: false };
}

export const text: Read<string> = (said) => {
  if (said === '' || said.length > textMax) throw `has to be a text of 1 to ${textMax} characters`;
  return said;
};

/** A position, or a number of rows. */
export const number: Read<number> = (said) => {
  if (!/^(?:0|[1-9]\d{0,14})$/.test(said)) throw 'has to be a whole number';
  return Number(said);
};

/** Said, or left out. */
export const flag: Read<true> = (said) => {
  if (said !== '1') throw 'has to be 1, or left out';
  return true;
};

/** One of some words. */
export function oneOf<const Word extends string>(...words: readonly Word[]): Read<Word> {
  return (said) => {
    const found = words.find((word) => word === said);
    if (found === undefined) throw `has to be one of ${words.join(', ')}`;
    return found;
  };
}

/** ULIDs of sessions, with commas between them. */
export const ids: Read<readonly string[]> = (said) => {
  const all = said.split(',');
  if (!all.every((id) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id)))
    throw 'has to be ULIDs with commas between them';
  return all;
};

/**
 * Reads the query of a request: each parameter at most once, none that the route does not have. Pure.
 * @throws Refused
 */
export function readQuery<P extends Parameters>(query: string, parameters: P): Values<P> {
  const values: Record<string, unknown> = {};
  for (const [name, said] of query === '' ? [] : query.split('&').map(pairOf)) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (parameter === undefined) throw bad(name, 'is not known here');
    if (Object.hasOwn(values, name)) throw bad(name, 'is there twice');
    try {
      values[name] = parameter.read(said);
    } catch (why) {
      throw bad(name, String(why));
    }
  }
  const missing = Object.entries(parameters).find(
    ([name, { isNeeded }]) => isNeeded && !Object.hasOwn(values, name),
  );
  if (missing !== undefined) throw bad(missing[0], 'is missing');
  return values as Values<P>;
}

function pairOf(pair: string): readonly [name: string, said: string] {
  const at = pair.indexOf('=');
  try {
    const plain = (coded: string) => decodeURIComponent(coded.replaceAll('+', ' '));
    return at === -1 ? [plain(pair), ''] : [plain(pair.slice(0, at)), plain(pair.slice(at + 1))];
  } catch {
    throw new Refused(400, {
      code: 'UI_BAD_QUERY',
      message: 'cannot read the query: a percent sign begins no character',
    });
  }
}

function bad(name: string, what: string): Refused {
  const shown = name.slice(0, 50).toWellFormed();
  return new Refused(400, { code: 'UI_BAD_QUERY', message: `cannot read the query: '${shown}' ${what}` });
}
