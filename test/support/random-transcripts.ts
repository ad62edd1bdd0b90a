import fc from 'fast-check';
import { calls, model, person, returns, says } from './transcript.ts';

type Raw = { readonly [field: string]: unknown };

/**
 * What happens in one of the sessions: a turn, at its end or at an earlier one, also one that starts a subagent, a copy of a way of
 * it, which goes on, or a compaction, which keeps nothing, or some of the last records (`keep`).
 */
export interface Act {
  readonly what: 'turn' | 'agent' | 'copy' | 'compact' | 'keep' | 'clear';
  readonly in: number;
  readonly at: number;
  readonly answers: number;
  readonly how: number;
}

export const acts = (what: readonly Act['what'][]): fc.Arbitrary<Act[]> => {
  const n = fc.nat(11);
  const act = fc.record({
    what: fc.constantFrom(...what),
    in: n,
    at: n,
    answers: fc.nat(3),
    how: fc.nat(63),
  });
  return fc.array(act, { minLength: 1, maxLength: 9 });
};

/** A file that is being written. */
interface File {
  readonly session: string;
  readonly records: Raw[];
  /** The records of its subagents, by their ids. */
  readonly agents: Map<string, readonly Raw[]>;
  /** The last records of turns, and the one at which it goes on. */
  readonly heads: string[];
  head: string | null;
}

/** The ways in which Claude Code has written copies: with what names the source, and under the same ids or others. */
const copying = ['forkedFrom', 'forkedFrom under new ids', 'session_id', 'nothing', 'nothing under new ids'];

/** That of `/branch` today, which has what a compaction kept behind it. */
export const branching: readonly string[] = ['forkedFrom, with what was kept behind'];

/** Those of today, in which records keep their ids. */
export const copyingToday: readonly string[] = copying.filter((way) => !way.endsWith('new ids'));

/** Files of Claude Code, each of one session, the sources before their copies. */
export function filesOf(
  all: readonly Act[],
  how: { readonly requests: boolean; readonly ways?: readonly string[] },
): readonly (readonly Raw[])[] {
  return sessionsOf(all, how).map(({ records }) => records);
}

/** The same with their subagents. */
export function sessionsOf(
  all: readonly Act[],
  { requests, ways = copying }: { readonly requests: boolean; readonly ways?: readonly string[] },
): readonly Pick<File, 'session' | 'records' | 'agents'>[] {
  const files: File[] = [newFile(1)];
  let [n, second] = [0, 0];
  const write = (file: File, record: Raw): void => {
    second += 1;
    const timestamp = new Date(Date.UTC(2026, 2, 1, 10, 0, second)).toISOString();
    file.records.push({
      timestamp,
      ...unnamed(record, requests || second % 2 === 0),
      sessionId: file.session,
    });
  };
  const takeTurn = (
    file: File,
    parent: string | null,
    { answers, how }: Pick<Act, 'answers' | 'how'>,
  ): void => {
    n += 1;
    let last = `u${n}`;
    write(file, person({ uuid: last, parent }, `ask ${n}`));
    const ends = (['call', 'call and answer'] as const)[how % 4];
    for (let i = 1; i <= answers; i += 1) {
      const isCall = i === answers && ends !== undefined;
      const block = isCall ? calls(`t${n}`) : says(`did ${n} ${i}`);
      const uuid = `a${n}x${i}`;
      write(
        file,
        model({ uuid, parent: last, id: `m${n}` }, [block], { usage: { output_tokens: 10 * i + (n % 7) } }),
      );
      last = uuid;
    }
    if (answers > 0 && ends !== undefined) {
      write(file, person({ uuid: `r${n}`, parent: last }, [returns(`t${n}`)]));
      last = `r${n}`;
    }
    if (answers > 0 && ends === 'call and answer') {
      write(
        file,
        model({ uuid: `b${n}`, parent: last }, [says(`then ${n}`)], { usage: { output_tokens: 100 + n } }),
      );
      last = `b${n}`;
    }
    file.head = last;
    file.heads.push(last);
  };
  /** A turn that starts a subagent, whose result may not have come back. */
  const delegate = (file: File, parent: string | null, { how }: Pick<Act, 'how'>): void => {
    n += 1;
    const [id, call] = [`g${n}`, `t${n}`];
    const inside = { isSidechain: true, agentId: id };
    const usage = { output_tokens: 20 + (n % 7) };
    write(file, person({ uuid: `u${n}`, parent }, `ask ${n}`));
    write(file, model({ uuid: `a${n}`, parent: `u${n}` }, [calls(call, 'Task')], { usage }));
    file.agents.set(id, [
      person({ uuid: `gu${n}` }, `look ${n}`, { ...inside, sessionId: file.session }),
      model({ uuid: `ga${n}`, parent: `gu${n}` }, [says(`seen ${n}`)], {
        ...{ ...inside, usage, sessionId: file.session },
      }),
    ]);
    if (how % 4 > 0)
      write(
        file,
        person({ uuid: `r${n}`, parent: `a${n}` }, [returns(call)], {
          toolUseResult: { status: 'completed', agentId: id },
        }),
      );
    file.head = how % 4 > 0 ? `r${n}` : `a${n}`;
    file.heads.push(file.head);
  };
  for (const act of all) {
    const file = files[act.in % files.length] ?? newFile(0);
    const earlier = file.heads[act.at % Math.max(1, file.heads.length)] ?? null;
    if (act.what === 'copy' && files.length < 4 && file.head !== null) {
      const way = ways[(act.answers + (act.how >> 2)) % ways.length] ?? '';
      const copy = copyOf(file, act.how % 8 === 0 ? earlier : file.head, {
        ...{ session: `s-${files.length + 1}`, way, isWhole: act.how < 32 },
      });
      files.push(copy);
      takeTurn(copy, copy.head, { answers: 1, how: 3 });
    } else if ((act.what === 'compact' || act.what === 'keep') && file.head !== null) {
      n += 1;
      const boundary = { type: 'system', subtype: 'compact_boundary', uuid: `c${n}`, parentUuid: null };
      const kept = act.what === 'keep' ? keptBefore(file, `s${n}`, act.how % 7) : {};
      const compactMetadata = { trigger: 'manual', ...kept };
      write(file, { ...boundary, logicalParentUuid: file.head, compactMetadata });
      write(file, person({ uuid: `s${n}`, parent: `c${n}` }, `summary ${n}`, { isCompactSummary: true }));
      file.head = `s${n}`;
      file.heads.push(`s${n}`);
    } else {
      const isAnew = (act.what === 'turn' || act.what === 'agent') && act.at % 3 === 1;
      const parent = act.what === 'clear' ? null : isAnew ? earlier : file.head;
      if (act.what === 'agent') delegate(file, parent, act);
      else takeTurn(file, parent, act);
    }
  }
  return files;
}

/** What a compaction keeps: the last records of the way to its place, back to a boundary at most. */
function keptBefore({ records, head }: File, anchorUuid: string, count: number): Raw {
  const byId = new Map(records.map((one) => [String(one.uuid), one]));
  const uuids: string[] = [];
  for (let at = byId.get(head ?? ''); at !== undefined && uuids.length <= count; ) {
    if (at.subtype === 'compact_boundary' || at.isCompactSummary === true) break;
    uuids.unshift(String(at.uuid));
    at = byId.get(String(at.parentUuid));
  }
  const [headUuid] = uuids;
  if (headUuid === undefined) return {};
  return {
    preservedSegment: { headUuid, anchorUuid, tailUuid: uuids.at(-1) },
    preservedMessages: { anchorUuid, uuids },
  };
}

function newFile(n: number): File {
  return { session: `s-${n}`, records: [], agents: new Map(), heads: [], head: null };
}

/** A record as programs write it that may name no request, and without the time that all records of tests have. */
function unnamed({ timestamp: _, requestId, ...rest }: Raw, isNamed: boolean): Raw {
  return isNamed && requestId !== undefined ? { ...rest, requestId } : rest;
}

/** A copy in which what compactions kept follows them, as the answers that `/branch` writes there: these took no tokens. */
function withKeptBehind(path: readonly Raw[]): readonly Raw[] {
  let records = path;
  for (const boundary of path) {
    const { preservedMessages } = (boundary.compactMetadata ?? {}) as {
      preservedMessages?: { uuids: string[] };
    };
    const uuids = new Set(preservedMessages?.uuids);
    const at = records.indexOf(boundary);
    const kept = records.slice(0, Math.max(0, at)).filter((one) => uuids.has(String(one.uuid)));
    const [summary, next] = records.slice(at + 1, at + 3);
    // One that was left out is no part of the way; what begins with the compaction is another copy. No answer is cut.
    const [first] = kept;
    const idOf = (one: Raw | undefined) => (one?.message as Raw | undefined)?.id;
    const above = records.find(({ uuid }) => uuid === first?.parentUuid);
    const isCut = idOf(first) !== undefined && idOf(first) === idOf(above);
    const isAll = kept.length === uuids.size && above !== undefined && !isCut;
    if (!isAll || summary === undefined) continue;
    const chained = kept.map((one, i) => ({
      ...{ ...one, ...(i === 0 && { parentUuid: summary.uuid }) },
      ...(one.type === 'assistant' && { message: { ...(one.message as Raw), usage: { output_tokens: 0 } } }),
    }));
    const behind = next && { ...next, parentUuid: kept.at(-1)?.uuid };
    const before = records.slice(0, at).filter((one) => !kept.includes(one));
    records = [
      ...before,
      { ...boundary, logicalParentUuid: kept[0]?.parentUuid },
      summary,
      ...chained,
      ...(behind === undefined ? [] : [behind]),
      ...records.slice(at + 3),
    ];
  }
  return records;
}

/** A file that begins with what leads to a record of another one: all of it, or that behind the last compaction. */
function copyOf(
  of: File,
  to: string | null,
  { session, way, isWhole }: { readonly session: string; readonly way: string; readonly isWhole: boolean },
): File {
  const byId = new Map(of.records.map((one) => [String(one.uuid), one]));
  const path: Raw[] = [];
  for (
    let at = byId.get(to ?? '');
    at !== undefined;
    at = byId.get(String(at.parentUuid ?? at.logicalParentUuid))
  ) {
    path.push(at);
    if (!isWhole && at.subtype === 'compact_boundary') break;
  }
  const named = (id: unknown) =>
    way.endsWith('new ids') && typeof id === 'string' ? `${session}.${id}` : id;
  const whole = path.reverse();
  const records = (way.endsWith('kept behind') ? withKeptBehind(whole) : whole).map((one) => {
    const { forkedFrom: _, session_id: __, ...bare } = one;
    return {
      ...{ ...bare, sessionId: session, uuid: named(one.uuid), parentUuid: named(one.parentUuid) },
      ...(one.logicalParentUuid !== undefined && { logicalParentUuid: named(one.logicalParentUuid) }),
      ...(way.startsWith('forkedFrom') && { forkedFrom: { sessionId: of.session, messageUuid: one.uuid } }),
      ...(way === 'session_id' && { session_id: of.session }),
    };
  });
  const ids = new Set(records.map(({ uuid }) => uuid));
  const heads = of.heads.map((one) => String(named(one))).filter((one) => ids.has(one));
  // What was kept is behind its summary.
  return { session, records, agents: new Map(), heads, head: String(records.at(-1)?.uuid) };
}
