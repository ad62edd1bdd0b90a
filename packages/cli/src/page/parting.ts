import type { DiffSide } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { textDiff } from '../output/text-diff.ts';
import { readPlace } from '../session/place.ts';
import { stateIn } from '../transcript/item-rows.ts';
import type { PageData, Parting, PartingSide } from './data.ts';
import { lineOf, needShown, type PageSource, placesOf, refOf, shownAs } from './source.ts';
import { flat } from './texts.ts';

/** Names of a list of an answer, characters of a name, and of the value of a state. */
const namesMax = 200;
const nameMax = 500;
const valueMax = 500;
/** Characters of the comparison of two answers. */
const answersMax = 50_000;

/** Where two sessions, or two points of them, part, and what each has beyond that, as `tape diff` compares them. */
export async function parting(
  source: PageSource,
  { a: one, b: other }: Parameters<PageData['parting']>[0],
): Promise<Parting> {
  const { store } = source;
  const { diffSessions } = await import('@tapedeck/runtime');
  const placeOf = (text: string) => {
    const { session, point: at } = readPlace(store, text);
    return { info: needShown(store, session), at };
  };
  const places = { a: placeOf(one), b: placeOf(other) };
  const asked = ({ info, at }: (typeof places)['a']) => ({
    session: info.id,
    ...(at !== undefined && { at }),
  });
  const { base, a, b } = await diffSessions(store, asked(places.a), asked(places.b), { messages: 0 });
  const common = base === undefined ? undefined : shownAs(store, base.session);
  const names = { a: refOf(store, places.a.info), b: refOf(store, places.b.info) };
  const answers =
    a.answer === undefined || b.answer === undefined
      ? undefined
      : await textDiff(
          { label: `${names.a}@${a.answer.seq}`, text: a.answer.text },
          { label: `${names.b}@${b.answer.seq}`, text: b.answer.text },
        );
  return {
    a: sideOf(a, names.a, places.a.info.head),
    b: sideOf(b, names.b, places.b.info.head),
    ...(base !== undefined && {
      // A deleted session can have the last common entry: both sides have it, too.
      common: {
        session: common === undefined ? names.a : refOf(store, common),
        seq: base.seq,
      },
    }),
    files: filesOf(a, b),
    states: statesOf(store, { a, b, ids: { a: places.a.info.id, b: places.b.info.id } }),
    ...(answers !== undefined && { answers: answers.slice(0, answersMax) }),
    command: lineOf(source, 'diff', [
      placesOf(store, places.a.info)(a.at),
      placesOf(store, places.b.info)(b.at),
    ]),
  };
}

function sideOf(
  { at, entries, messages, tools, complete }: DiffSide,
  session: string,
  head: number,
): PartingSide {
  const { user, assistant, merge } = messages;
  return {
    ...{ session, at, head, entries, messages: user + assistant + merge },
    tools: tools.slice(0, namesMax).map(({ tool, calls }) => ({ tool: flat(tool, nameMax), calls })),
    complete: complete && tools.length <= namesMax,
  };
}

function filesOf(a: DiffSide, b: DiffSide): Parting['files'] {
  const [ofA, ofB] = [a, b].map(({ files }) => new Map(files.map(({ path, wrote }) => [path, wrote])));
  const paths = [...new Set([...(ofA?.keys() ?? []), ...(ofB?.keys() ?? [])])].sort();
  return paths.slice(0, namesMax).map((path) => ({
    path: flat(path, nameMax),
    in: ofA?.has(path) !== true ? 'b' : ofB?.has(path) === true ? 'both' : 'a',
    wrote: ofA?.get(path) === true || ofB?.get(path) === true,
  }));
}

function statesOf(
  store: HomeStore,
  {
    a,
    b,
    ids,
  }: { readonly a: DiffSide; readonly b: DiffSide; readonly ids: Readonly<Record<'a' | 'b', string>> },
): Parting['states'] {
  const lastValue = (id: string, key: string, { state }: DiffSide) => {
    const seq = state.find((one) => one.key === key)?.seq;
    const [entry] = seq === undefined ? [] : store.entries.read(id, { from: seq, to: seq });
    const value = entry === undefined ? undefined : stateIn(entry.payload)[key];
    return value === undefined ? undefined : flat(JSON.stringify(value), valueMax);
  };
  const keys = [...new Set([...a.state, ...b.state].map(({ key }) => key))].sort();
  return keys.slice(0, namesMax).map((key) => {
    const values = { a: lastValue(ids.a, key, a), b: lastValue(ids.b, key, b) };
    return {
      key: flat(key, nameMax),
      ...(values.a !== undefined && { a: values.a }),
      ...(values.b !== undefined && { b: values.b }),
    };
  });
}
