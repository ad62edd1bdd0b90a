import type { Finding } from '../../../src/page/data.ts';
import { useAsked, useSource } from '../data/data.tsx';
import { CommandLine } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { Loading } from '../parts/loading.tsx';
import { Ago, counted, grouped } from '../parts/numbers.tsx';
import { Refused } from '../parts/refused.tsx';
import { addressOf } from '../route.ts';

const weights = [
  ['damage', 'Damage', 'what was changed or lost', 'M4 4 12 12M12 4 4 12'],
  ['incomplete', 'Incomplete', 'what is not finished', 'M8 3v6M8 12v.5'],
  ['note', 'Notes', 'what harms nothing', 'M8 4v.5M8 7v5'],
] as const;

/** What a check finds in the home, or in a session, each at its place. */
export function Check({ session }: { readonly session?: string }) {
  const { home } = useSource();
  const { value, error, again } = useAsked(
    async (data) => await data.findings(session === undefined ? {} : { session }),
    session ?? '',
    { pause: 1_000 },
  );
  return (
    <div class="sheet">
      <Heading title={session === undefined ? 'Checks' : `Checks of ${session}`}>
        <div class="tools">
          {session !== undefined && <a href={addressOf({ page: 'session', session })}>Timeline</a>}
          {session !== undefined && <a href={addressOf({ page: 'check' })}>All sessions</a>}
          {value !== undefined && <CommandLine line={value.command} />}
          {home.isLive && (
            <button type="button" class="toggle" onClick={again}>
              Check again
            </button>
          )}
        </div>
      </Heading>
      {error !== undefined && <Refused error={error} again={again} />}
      {value === undefined && error === undefined && <Loading words="Checking" />}
      {value !== undefined && (
        <>
          <p role="status">
            {value.total === 0 ? (
              <strong class="tone-good">✓ Nothing is wrong.</strong>
            ) : (
              <strong>{counted(value.total, 'finding')}.</strong>
            )}{' '}
            <span class="soft">
              {counted(value.sessions, 'session')} and {counted(value.entries, 'entry', 'entries')} were
              checked, <Ago at={value.checkedAt} />.
            </span>
          </p>
          {weights.map(([weight, title, means, mark]) => {
            const found = value.findings.filter((finding) => finding.weight === weight);
            if (found.length === 0) return null;
            return (
              <section key={weight} class={`findings is-${weight}`}>
                <h2>
                  <svg class="mark-of" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
                    <path d={mark} />
                  </svg>
                  {title} <span class="soft">{means}</span>
                </h2>
                <ul>
                  {found.map((finding) => (
                    <Found key={finding.id} finding={finding} />
                  ))}
                </ul>
              </section>
            );
          })}
          {value.total > value.findings.length && (
            <p class="soft">
              {grouped(value.total - value.findings.length)} more: the command lists all of them.
            </p>
          )}
        </>
      )}
    </div>
  );
}

function Found({ finding: { code, section, text, session, seq, command } }: { readonly finding: Finding }) {
  return (
    <li>
      <p>
        {session !== undefined && (
          <a href={addressOf({ page: 'session', session, ...(seq !== undefined && { seq }) })}>
            {session}
            {seq !== undefined && `@${seq}`}
          </a>
        )}{' '}
        {text}
      </p>
      <p class="about-finding">
        <span class="faint">
          {section} · <code>{code}</code>
        </span>
        {command !== undefined && <CommandLine line={command} />}
      </p>
    </li>
  );
}
