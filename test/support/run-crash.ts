import { existsSync, readFileSync } from 'node:fs';
import type { Entry, Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { startWorker } from './killed-worker.ts';
import type { ChatAnswer, ChatRequest } from './provider.ts';
import type { RunLine, RunOrder } from './run-worker.ts';
import type { TempHome } from './temp-home.ts';

/** Where a worker is killed. */
export type Death = NonNullable<RunOrder['dieAt']>;

/** Runs a worker on homes to its end. Says whether it was killed. @throws when it failed by itself, with its stderr */
export async function runWorker(
  homes: readonly TempHome[],
  order: Omit<RunOrder, 'homes'>,
): Promise<boolean> {
  const whole: RunOrder = {
    homes: homes.map(({ db, graph, file }) => ({ db, graph, effects: file('effects'), said: file('said') })),
    ...order,
  };
  return (await startWorker('run-worker.ts', whole).ended).killed;
}

const asking = (name: string, ids: readonly string[], args: Json = {}) =>
  ids.map((id) => ({ id, name, arguments: args }));

const together = { _parallel: true };

/** The answers to the first message, and to the second; each is due when its calls are not in the request yet. */
const first: readonly ChatAnswer[] = [
  {
    reasoning: 'Where to begin?',
    text: ['I will ', 'write, ', 'read ', 'and pay.'],
    calls: [...asking('write', ['w1']), ...asking('read', ['r1']), ...asking('pay', ['p1'])],
  },
  {
    calls: [...asking('write', ['w2', 'w3'], together), ...asking('read', ['r2']), ...asking('pay', ['p2'])],
  },
  {
    text: 'And on.',
    calls: [...asking('write', ['w4']), ...asking('fail', ['f1']), ...asking('write', ['w5'])],
  },
];
const second: readonly ChatAnswer[] = [{ reasoning: 'Once more.', calls: asking('write', ['w6']) }];

/** The answer of the worker's provider. It depends on the request alone, so that a run can resume anywhere. */
export function nextAnswer({ messages }: ChatRequest): ChatAnswer {
  const asked = JSON.stringify(messages);
  const isSecond = asked.includes('And then?');
  const due = (isSecond ? second : first).find(
    (answer) => 'calls' in answer && !answer.calls?.some(({ id }) => asked.includes(`"${id}"`)),
  );
  return due ?? { text: words(isSecond ? finalTexts.andThen : finalTexts.go) };
}

/** How the two messages are answered in the end. */
const finalTexts = {
  go: `All of it is done, as far as I can tell: ${'so and so, '.repeat(20)}that is all.`,
  andThen: 'Then that is done as well.',
};

function words(text: string): string[] {
  return text.split(/(?<= )/);
}

/** The faults of a home whose worker was killed, and which another has completed. */
export function faultsAfterRun(home: TempHome): string[] {
  using store = home.open();
  const entries = [...store.entries.read('main')];
  const info = store.sessions.find('main');
  const effects = effectsOf(home).filter((id) => !id.startsWith('r'));
  return [
    ...[...store.verify()].map(({ code, message }) => `${code}: ${message}`),
    ...effects.filter((id, i) => effects.indexOf(id) !== i).map((id) => `call ${id} was run twice`),
    ...(info?.settled === info?.head ? [] : ['calls are open']),
    ...store.inbox.list('main').map(({ key }) => `${key} waits in the inbox`),
    ...store.live.read('main').map(({ run }) => `the live answer of ${run} is left`),
    ...store.leases.list().map(({ owner }) => `${owner.id} has the lease`),
    ...saidIn(home).flatMap((line) => lost(entries, line)),
    ...['go', 'then'].flatMap((key) =>
      countFault(
        `message ${key}`,
        entries.filter((e) => e.key === `u:${key}`),
      ),
    ),
    ...Object.values(finalTexts).flatMap((text) =>
      countFault(
        `answer ${text}`,
        entries.filter((e) => e.meta.partial !== true && textOf(e) === text),
      ),
    ),
  ];
}

/** What workers acknowledged. A line that a kill cut off does not count. */
function saidIn(home: TempHome): RunLine[] {
  return linesOf(home.file('said')).map((line) => JSON.parse(line) as RunLine);
}

/** The calls that were run, in the order in which they were, each as often as it was. */
export function effectsOf(home: TempHome): string[] {
  return linesOf(home.file('effects'));
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
}

function lost(entries: readonly Entry[], line: RunLine): string[] {
  if (line.did === 'send')
    return countFault(
      `message ${line.key}`,
      entries.filter((e) => e.key === `u:${line.key}`),
    );
  if (line.did === 'run') return entries.some(({ seq }) => seq === line.to) ? [] : [`@${line.to} is lost`];
  const { event } = line;
  if (event.type === 'tool-detected')
    return countFault(
      `call ${event.toolCallId}`,
      entries.filter((e) => asks(e, event.toolCallId)),
    );
  if (event.type !== 'tool-completed') return [];
  const results = entries.filter(
    ({ kind, payload }) => kind === 'tool-result' && isOf(payload, event.toolCallId),
  );
  const [result] = results;
  const unlike =
    event.success && !(isObject(result?.payload) && textOfOutput(result.payload.output) === event.output);
  return [
    ...countFault(`result of ${event.toolCallId}`, results),
    ...(unlike ? [`${event.toolCallId} changed`] : []),
  ];
}

function countFault(what: string, found: readonly unknown[]): string[] {
  return found.length === 1 ? [] : [`${what} is there ${found.length} times`];
}

function asks({ payload }: Entry, id: string): boolean {
  return (
    isObject(payload) && Array.isArray(payload.content) && payload.content.some((part) => isOf(part, id))
  );
}

function isOf(value: Json, id: string): boolean {
  return isObject(value) && value.toolCallId === id;
}

function textOf({ payload }: Entry): string {
  const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  return content.map((part) => (isObject(part) && part.type === 'text' ? part.text : '')).join('');
}

function textOfOutput(output: Json | undefined): Json | undefined {
  return isObject(output) ? output.value : undefined;
}
