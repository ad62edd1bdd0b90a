import type { ComponentChildren } from 'preact';
import type { Seen as SeenAnswer, SeenRange } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useAsked, useSource } from '../data/data.tsx';
import { Commands } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { useKeys } from '../parts/keys.ts';
import { NotHere } from '../parts/loading.tsx';
import { counted, grouped } from '../parts/numbers.tsx';
import { Positions } from '../reading/places.tsx';
import { difference, stripOf } from '../reading/strip.ts';
import { addressOf } from '../route.ts';

/** What a model was given for an answer, and what changed since the answer before. */
export function Seen({
  session,
  seq,
  go,
}: {
  readonly session: string;
  readonly seq: number;
  readonly go: Go;
}) {
  const { value, error, again } = useAsked(
    async (data) => await data.seen({ session, seq }),
    `${session}@${seq}`,
  );
  const before = value?.before?.seq;
  const { data } = useSource();
  const toTrace = { page: 'trace', session, seq } as const;
  const isTraced = data.has(toTrace);
  useKeys([
    { keys: ['u'], what: 'go back to the entry', act: () => go({ page: 'session', session, seq }) },
    ...(isTraced ? [{ keys: ['t'], what: 'trace the entry', act: () => go(toTrace) }] : []),
    {
      keys: ['p'],
      what: 'see the view of the answer before',
      act: () => before !== undefined && go({ page: 'seen', session, seq: before }),
    },
  ]);
  return (
    <div class="sheet">
      <Heading title="What the model saw">
        <span class="soft">
          {value === undefined || value.entry === 'answer' ? 'for the answer at' : 'at'}{' '}
          <a href={addressOf({ page: 'session', session, seq })}>
            {session}@{seq}
          </a>
        </span>
        <div class="tools">{isTraced && <a href={addressOf(toTrace)}>Trace</a>}</div>
      </Heading>
      <NotHere {...{ value, error, again }} />
      {value !== undefined && <View seen={value} />}
    </div>
  );
}

function View({ seen }: { readonly seen: SeenAnswer }) {
  const { session, fault, recorded, ranges, more, before } = seen;
  return (
    <>
      {!recorded && <Unrecorded seen={seen} />}
      {fault !== undefined && <p class="notice is-bad">The view cannot be made: {fault}.</p>}
      {(recorded || fault === undefined) && <Facts seen={seen} />}
      <Commands commands={seen.commands} />
      {ranges.length > 0 && (
        <section aria-labelledby="in-view">
          <h2 id="in-view">What was in, and what was not</h2>
          <Strip ranges={ranges} />
          {more !== undefined && <p class="soft">{counted(more, 'range')} before these are not listed.</p>}
          <Ranges session={session} ranges={ranges} />
        </section>
      )}
      {before !== undefined && <Changes seen={seen} before={before} />}
    </>
  );
}

/** Says of what no view was recorded, and leads from what is no answer to those around it. */
function Unrecorded({ seen: { session, seq, entry, nearest = [], fault } }: { readonly seen: SeenAnswer }) {
  const what = {
    answer: 'No view was recorded with this answer.',
    other: `@${seq} is not an answer of a model.`,
    damaged: `What is stored at @${seq} is damaged and cannot be read.`,
  }[entry];
  return (
    <div class="notice">
      <p>
        {what} {fault === undefined && 'This is what a view would be here by the rules of today.'}
      </p>
      {entry !== 'answer' && (
        <p>
          {nearest.length === 0 && 'There is no answer near it.'}
          {nearest.length > 0 && `The nearest ${nearest.length === 1 ? 'answer' : 'answers'}: `}
          {nearest.map((at, i) => (
            <span key={at}>
              {i > 0 && ', '}
              <a href={addressOf({ page: 'seen', session, seq: at })}>@{at}</a>
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

function Facts({ seen }: { readonly seen: SeenAnswer }) {
  const { policy, target, tokens, digest, pruned, same, recorded } = seen;
  return (
    <dl class="facts">
      <Fact name="Tokens">{grouped(tokens)}</Fact>
      <Fact name="Policy">{policy}</Fact>
      {target !== undefined && <Fact name="For">{target}</Fact>}
      {pruned !== undefined && <Fact name="Outputs left out">{grouped(pruned)}</Fact>}
      {recorded && (
        <Fact name="Same today">
          {same === undefined ? (
            'not compared'
          ) : same ? (
            <span class="tone-good">yes: the tape still yields this view</span>
          ) : (
            <span class="tone-bad">no: the tape yields another view now</span>
          )}
        </Fact>
      )}
      {digest !== '' && (
        <Fact name="Digest">
          <code>{digest}</code>
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The positions as a strip. The table says the same. */
function Strip({ ranges }: { readonly ranges: readonly SeenRange[] }) {
  return (
    <svg class="strip" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      {stripOf(ranges).map(({ x, width, in: isIn }) => (
        <rect
          key={x}
          {...{ x, width }}
          y={isIn ? 0 : 3}
          height={isIn ? 8 : 2}
          class={isIn ? 'is-in' : 'is-out'}
        />
      ))}
    </svg>
  );
}

function Ranges({ session, ranges }: { readonly session: string; readonly ranges: readonly SeenRange[] }) {
  return (
    <table class="figures">
      <thead>
        <tr>
          <th>Positions</th>
          <th class="number">Entries</th>
          <th>In the view</th>
          <th>Why</th>
        </tr>
      </thead>
      <tbody>
        {ranges.map(({ from, to, in: isIn, why }) => (
          <tr key={`${from} ${isIn}`} class={isIn ? 'is-in' : 'is-out'}>
            <td>
              <Positions {...{ session, from, to }} />
            </td>
            <td class="number">{grouped(to - from + 1)}</td>
            <td>{isIn ? '● in' : '○ out'}</td>
            <td>{isIn && why === 'in view' ? '' : why}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Changes({
  seen: { session, tokens, policy },
  before,
}: {
  readonly seen: SeenAnswer;
  readonly before: NonNullable<SeenAnswer['before']>;
}) {
  const { data } = useSource();
  const { seq, added, removed } = before;
  return (
    <section aria-labelledby="changed">
      <h2 id="changed">What changed since the answer before</h2>
      <dl class="facts">
        <Fact name="That answer">
          <a href={addressOf({ page: 'session', session, seq })}>@{seq}</a>
          {data.has({ page: 'seen', session, seq }) && (
            <>
              , <a href={addressOf({ page: 'seen', session, seq })}>what its model saw</a>
            </>
          )}
        </Fact>
        <Fact name="Tokens">
          {grouped(before.tokens)} → {grouped(tokens)} ({difference(tokens, before.tokens)})
        </Fact>
        {before.policy !== policy && (
          <Fact name="Policy">
            {before.policy} → {policy}
          </Fact>
        )}
      </dl>
      {added.length === 0 && removed.length === 0 && <p class="soft">The same entries were in both views.</p>}
      <ul class="changes">
        {added.map(([from, to]) => (
          <li key={`+${from}`}>
            <span class="tone-good">+ added</span> <Positions {...{ session, from, to }} />
          </li>
        ))}
        {removed.map(({ from, to, why }) => (
          <li key={`-${from}`}>
            <span class="tone-bad">− removed</span> <Positions {...{ session, from, to }} />{' '}
            {why !== '' && <span class="soft">{why}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
