import { existsSync, readFileSync } from 'node:fs';
import { checkJournal, readLines } from '@tapedeck/graph';
import { openJournal } from '@tapedeck/graph/journal';
import {
  type Entry,
  type JsonObject,
  openTapeStore,
  type SessionInfo,
  type SqliteTapeStore,
  view,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { DelegateHome } from './delegate-acts.ts';
import { finalText, noticeText, thenText, withForm } from './delegate-scenes.ts';
import type { Asked } from './delegate-server.ts';
import { graphDifferences } from './graph-agrees.ts';
import { halves } from './halves.ts';
import { rawDb } from './raw-db.ts';

/** The state of a home, and the requests to its server. */
interface Found {
  readonly home: DelegateHome;
  readonly store: SqliteTapeStore;
  readonly sessions: readonly SessionInfo[];
  readonly asked: readonly Asked[];
}

/**
 * What is wrong with a home after its recovery (`recovered`), or once its parent has been run again as well (`over`):
 * a child that is lost or reported twice, an answer or an effect that is doubled, an open call, a damaged store.
 */
export function faultsOfDelegation(
  home: DelegateHome,
  asked: readonly Asked[],
  at: 'recovered' | 'over',
): string[] {
  using store = openTapeStore(home.db, { journal: openJournal(home.graph), durability: 'fast' });
  const sessions = [...store.sessions.list({ all: true })];
  const found: Found = { home, store, sessions, asked };
  const children = sessions.filter(({ deliver }) => deliver !== undefined);
  return [
    ...wholeFaults(found),
    ...effectFaults(home),
    ...(at === 'over' ? sessions : children).flatMap((info) => sessionFaults(found, info)),
    ...children.flatMap((child) => childFaults(found, child)),
    ...askedAgain(found),
    ...(at === 'over' ? parentFaults(found) : []),
  ].map((fault) => `${home.scene}: ${fault}`);
}

function wholeFaults({ home, store }: Found): string[] {
  using db = rawDb(home.db);
  const report = checkJournal(existsSync(home.graph) ? readLines(home.graph) : []);
  const text = existsSync(home.graph) ? readFileSync(home.graph, 'utf8') : '';
  return [
    ...[...store.verify()].map(({ code, message }) => `${code}: ${message}`),
    ...halves(db),
    ...report.problems.map(({ code, message }) => `graph ${code}: ${message}`),
    ...graphDifferences(text, db),
    ...store.leases.list().map(({ session }) => `${session} has an owner still`),
  ];
}

/** Calls that were run more than once, and must not have been. */
function effectFaults({ effects }: DelegateHome): string[] {
  const ran = existsSync(effects) ? readFileSync(effects, 'utf8').split('\n').slice(0, -1) : [];
  return ran
    .filter((id, i) => id.startsWith('once-') && ran.indexOf(id) !== i)
    .map((id) => `${id} was run twice`);
}

/** For any session: no call is open or pending, and no answer appears twice. */
function sessionFaults({ store }: Found, { session: name, head, settled }: SessionInfo): string[] {
  const asked = answersOf(store, name).flatMap(({ payload }) =>
    partsOf(payload).flatMap((part) => (part.type === 'tool-call' ? [String(part.toolCallId)] : [])),
  );
  return [
    ...(head === settled ? [] : [`${name} has open calls`]),
    ...store.inbox.list(name).map(({ key }) => `${key} waits in the inbox of ${name}`),
    ...store.live.read(name).map(({ run }) => `the live answer of ${run} is left in ${name}`),
    ...asked.filter((id, i) => asked.indexOf(id) !== i).map((id) => `${name} has call ${id} twice`),
  ];
}

/** For a child: it has ended, and its parent has and is shown its result, once. */
function childFaults({ store, sessions }: Found, child: SessionInfo): string[] {
  const { session: name, id, task, delivery, parent = '' } = child;
  const own = [...store.entries.read(name, { own: true })];
  const who = taskOf(own);
  const finals = answersOf(store, name).filter(({ payload }) => textOf(payload).includes(finalText(who)));
  const result = own.filter(({ kind }) => kind === 'result');
  const ofForm = withForm.has(who)
    ? [
        ...countFault(`${name} (${who}) a result`, result),
        ...countFault(
          `${name} (${who}) was asked for its result`,
          own.filter(({ meta }) => meta.source === 'output'),
        ),
      ]
    : [];
  const entries = [...store.entries.read(parent)];
  const shown = JSON.stringify(view([...store.views.entries(parent)]).messages).replaceAll('\\', '');
  const answer = withForm.has(who)
    ? `"answer":${numberOf(result[0]?.payload)}}`
    : `${finalText(who)} (answer ${numberOf(finals[0]?.payload)})`;
  return [
    ...(task === 'completed' ? [] : [`${name} (${who}) is ${task}`]),
    ...(delivery === 'merged' ? [] : [`${name} (${who}) is not merged`]),
    ...countFault(`${name} (${who}) is done`, finals),
    ...ofForm,
    ...countFault(
      `anchor merge/${name} (${who})`,
      entries.filter((entry) => entry.name === `merge/${name}`),
    ),
    ...countFault(
      `the message of ${name} (${who})`,
      entries.filter(({ meta }) => meta.source === 'merge' && meta.child === id),
    ),
    ...(shown.split(answer).length === 2
      ? []
      : [`${parent} is shown '${answer}' ${shown.split(answer).length - 1} times`]),
    ...(sessions.filter(
      (other) =>
        other.parent === parent && taskOf([...store.entries.read(other.session, { own: true })]) === who,
    ).length === 1
      ? []
      : [`${who} was given to several children of ${parent}`]),
  ];
}

/** For `main`, after it has run again: each message and report has been answered once. */
function parentFaults({ home, store, sessions }: Found): string[] {
  const entries = [...store.entries.read('main')];
  const answers = answersOf(store, 'main').map(({ payload }) => textOf(payload));
  const saying = (text: string) => answers.filter((answer) => answer.startsWith(text));
  const children = sessions.filter(({ parent, deliver }) => parent === 'main' && deliver === 'merge+turn');
  const isRun = ['call', 'elsewhere', 'waits'].includes(home.scene);
  return [
    ...(home.scene === 'program'
      ? []
      : countFault(
          'the first message',
          entries.filter(({ key }) => key === 'u:first'),
        )),
    ...(isRun ? countFault('the first answer', saying(finalText(home.scene))) : []),
    ...children.flatMap(({ session: name, id }) => [
      ...countFault(
        `the notice of ${name}`,
        entries.filter(({ key }) => key?.startsWith(`u:notify:${id}:`) === true),
      ),
      ...countFault(`the turn of ${name}`, saying(noticeText(name))),
    ]),
    ...countFault('the last answer', saying(thenText)),
  ];
}

/** Requests for answers that are on a tape already. */
function askedAgain({ store, sessions, asked }: Found): string[] {
  const recorded = sessions.flatMap(({ session: name }) =>
    answersOf(store, name).map(({ payload, seq }) => ({ place: `${name}@${seq}`, index: numberOf(payload) })),
  );
  return recorded.flatMap(({ place, index }) => {
    const first = asked.find((one) => one.index === index);
    // A request of a process that died may be read after that of the process that took over.
    return asked
      .filter((one) => first !== undefined && one.digest === first.digest && one.sentAt > first.sentAt)
      .map((one) => `what ${place} answers was asked for again by request ${one.index}`);
  });
}

/** Whole answers of a session's model. */
function answersOf(store: SqliteTapeStore, session: string): Entry[] {
  return [...store.entries.read(session, { own: true, kind: 'message' })].filter(
    ({ payload, meta }) => isObject(payload) && payload.role === 'assistant' && meta.partial !== true,
  );
}

/** The number of the request that an answer, or a result, contains. */
function numberOf(payload: Entry['payload'] | undefined): number {
  const text = isObject(payload) && 'value' in payload ? JSON.stringify(payload) : textOf(payload ?? null);
  return Number(/answer(?:"?:| )(\d+)/.exec(text)?.[1] ?? -1);
}

function taskOf(own: readonly Entry[]): string {
  const { payload } = own.find(({ name }) => name === 'intention') ?? {};
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  return /task:(\w+)/.exec(String(state.next_steps))?.[1] ?? '';
}

function partsOf(payload: Entry['payload']): readonly JsonObject[] {
  return isObject(payload) && Array.isArray(payload.content) ? payload.content.filter(isObject) : [];
}

function textOf(payload: Entry['payload']): string {
  return partsOf(payload)
    .map((part) => (part.type === 'text' ? String(part.text) : ''))
    .join('');
}

function countFault(what: string, found: readonly unknown[]): string[] {
  return found.length === 1 ? [] : [`${what}: ${found.length} times`];
}
