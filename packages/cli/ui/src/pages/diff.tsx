import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Parting, PartingSide, TimelineItem } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useAsked, useSource } from '../data/data.tsx';
import { CommandLine } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { NotHere } from '../parts/loading.tsx';
import { counted, grouped } from '../parts/numbers.tsx';
import { Refused } from '../parts/refused.tsx';
import { aligned } from '../reading/aligned.ts';
import { FoldsOf } from '../reading/fold.tsx';
import { Item } from '../reading/item.tsx';
import { itemsBetween } from '../reading/items-between.ts';
import { useFolds } from '../reading/use-folds.ts';
import { addressOf } from '../route.ts';

interface DiffOptions {
  readonly a: string;
  readonly b: string;
  readonly go: Go;
}

/** Two sessions side by side, from where they part. */
export function Diff({ a, b, go }: DiffOptions) {
  const { value, error, again } = useAsked(async (data) => await data.parting({ a, b }), `${a} ${b}`);
  return (
    <div class="sheet wide-sheet">
      <Heading title="Compare">
        <Picker {...{ a, b, go }} />
        {value !== undefined && (
          <div class="tools">
            <CommandLine line={value.command} />
          </div>
        )}
      </Heading>
      <NotHere {...{ value, error, again }} />
      {value !== undefined && <Parted parting={value} />}
    </div>
  );
}

/** Which two sessions are compared. */
function Picker({ a, b, go }: DiffOptions) {
  const { data } = useSource();
  const { value } = useAsked(async (of) => await of.sessions({}), 'names', { isLive: false });
  const [names, setNames] = useState({ a, b });
  const compare = () => names.a !== '' && names.b !== '' && go({ page: 'diff', ...names });
  return (
    <form
      class="picker"
      onSubmit={(event) => {
        event.preventDefault();
        compare();
      }}
    >
      {(['a', 'b'] as const).map((side) => (
        <label key={side} class={`side-${side}`}>
          <span class="side">{side.toUpperCase()}</span>
          <input
            value={names[side]}
            list={`names-${side}`}
            aria-label={`Session ${side.toUpperCase()}`}
            spellcheck={false}
            onInput={({ currentTarget }) => setNames({ ...names, [side]: currentTarget.value })}
          />
          <datalist id={`names-${side}`}>
            {value?.rows
              .filter(({ session }) => data.has({ page: 'diff', ...names, [side]: session }))
              .map(({ session, id }) => (
                <option key={id} value={session} />
              ))}
          </datalist>
        </label>
      ))}
      <button type="submit" class="toggle">
        Compare
      </button>
      <button type="button" class="toggle" onClick={() => go({ page: 'diff', a: b, b: a })}>
        Swap
      </button>
    </form>
  );
}

function Parted({ parting }: { readonly parting: Parting }) {
  const { a, b, common, files, states, answers } = parting;
  return (
    <>
      <p class="common">
        {common === undefined ? (
          'They have no entry in common.'
        ) : (
          <>
            They part after{' '}
            <a href={addressOf({ page: 'session', ...common })}>
              {common.session}@{common.seq}
            </a>
            .
          </>
        )}
      </p>
      <div class="sides">
        <Side name="a" side={a} />
        <Side name="b" side={b} />
      </div>
      <div class="sides">
        <Files files={files} />
        <States states={states} />
      </div>
      {answers !== undefined && answers !== '' && (
        <details class="answers">
          <summary>The last answers, as a comparison of their lines</summary>
          <Unified text={answers} />
        </details>
      )}
      <Timelines
        key={`${a.session} ${b.session} ${common?.seq}`}
        {...{ a, b }}
        from={(common?.seq ?? 0) + 1}
      />
    </>
  );
}

function Side({ name, side }: { readonly name: 'a' | 'b'; readonly side: PartingSide }) {
  const { session, at, head, entries, messages, tools, complete } = side;
  return (
    <section class={`side-head side-${name}`}>
      <h2>
        <span class="side">{name.toUpperCase()}</span>{' '}
        <a href={addressOf({ page: 'session', session })}>{session}</a>
        <span class="soft">{at === head ? ` @${at}` : ` @${at} of ${head}`}</span>
      </h2>
      <p class="soft">
        {counted(entries, 'entry', 'entries')}, {counted(messages, 'message')} of its own
        {!complete && ', of which only the newest were read'}
      </p>
      <p>
        {tools.map(({ tool, calls }) => (
          <span key={tool} class="chip">
            {tool} × {grouped(calls)}
          </span>
        ))}
      </p>
    </section>
  );
}

const sides = { a: 'A alone', b: 'B alone', both: 'both' } as const;

function Files({ files }: Pick<Parting, 'files'>) {
  return (
    <section>
      <h2>Files</h2>
      {files.length === 0 ? (
        <p class="soft">Their calls name no files.</p>
      ) : (
        <table class="figures">
          <thead>
            <tr>
              <th>File</th>
              <th>In</th>
              <th>Written</th>
            </tr>
          </thead>
          <tbody>
            {files.map(({ path, in: where, wrote }) => (
              <tr key={path}>
                <td>
                  <code>{path}</code>
                </td>
                <td>{sides[where]}</td>
                <td>{wrote ? 'yes' : 'no'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function States({ states }: Pick<Parting, 'states'>) {
  return (
    <section>
      <h2>States of anchors</h2>
      {states.length === 0 ? (
        <p class="soft">Their anchors state nothing of their own.</p>
      ) : (
        <table class="figures">
          <thead>
            <tr>
              <th>Key</th>
              <th>A</th>
              <th>B</th>
            </tr>
          </thead>
          <tbody>
            {states.map(({ key, a, b }) => (
              <tr key={key}>
                <td>{key}</td>
                <td>{a === undefined ? <span class="faint">–</span> : <code>{a}</code>}</td>
                <td>{b === undefined ? <span class="faint">–</span> : <code>{b}</code>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Unified({ text }: { readonly text: string }) {
  return (
    <pre class="unified">
      {text.split('\n').map((line, i) => (
        <span key={i} class={line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same'}>
          {line}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}

/** How many positions of each side are loaded at a time. */
const step = 200;

/** The two timelines side by side, as far as they are loaded. */
function Timelines({
  a,
  b,
  from,
}: {
  readonly a: PartingSide;
  readonly b: PartingSide;
  readonly from: number;
}) {
  const [end, setEnd] = useState(from + step - 1);
  const [left, right] = [useSide(a, from, end), useSide(b, from, end)];
  const pairs = useMemo(() => aligned(left.items, right.items), [left.items, right.items]);
  const folds = useFolds();
  const isMore = end < Math.max(a.at, b.at);
  const error = left.error ?? right.error;
  return (
    <FoldsOf.Provider value={folds}>
      <h2>Side by side</h2>
      {error !== undefined && <Refused error={error} />}
      <ol class="pairs" aria-label="The two timelines">
        {pairs.map((pair, i) => (
          <li key={i} class="pair">
            {(['a', 'b'] as const).map((side) => {
              const item = pair[side];
              const { session } = side === 'a' ? a : b;
              return item === undefined ? (
                <div key={side} class={`empty-side side-${side}`} />
              ) : (
                <article
                  key={side}
                  class={`item is-${item.kind} by-${item.role ?? 'none'} side-${side}`}
                  aria-label={`${side.toUpperCase()}: ${session}@${item.seq}`}
                >
                  <Item session={session} item={item} scope={side} />
                </article>
              );
            })}
          </li>
        ))}
      </ol>
      {isMore ? (
        <button type="button" class="toggle" onClick={() => setEnd(end + step)}>
          Show {step} more positions
        </button>
      ) : (
        <p class="soft end">Both end here.</p>
      )}
    </FoldsOf.Provider>
  );
}

/** The items of a side up to a position. They are loaded anew when the side has become longer. */
function useSide({ session, at }: PartingSide, from: number, end: number) {
  const { data } = useSource();
  const [loaded, setLoaded] = useState<{ readonly items: readonly TimelineItem[]; readonly error?: unknown }>(
    {
      items: [],
    },
  );
  const last = Math.min(at, end);
  useEffect(() => {
    let isCurrent = true;
    const ask = async (first: number, to: number) => await data.timeline({ session, from: first, to });
    itemsBetween(ask, from, last).then(
      (items) => isCurrent && setLoaded({ items }),
      (error: unknown) => isCurrent && setLoaded((was) => ({ ...was, error })),
    );
    return () => {
      isCurrent = false;
    };
  }, [data, session, from, last, at]);
  return loaded;
}
