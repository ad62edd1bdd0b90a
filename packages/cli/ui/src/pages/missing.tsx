import { CommandLine } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { shellWord } from '../parts/shell-word.ts';
import type { Route } from '../route.ts';

/** A page that is not here: says which command shows the same, or that the address is none. */
export function Missing({ route }: { readonly route: Route | undefined }) {
  const line = route === undefined ? undefined : commandOf(route);
  return (
    <div class="sheet">
      <Heading title={line === undefined ? 'No such page' : 'Not on this page'} />
      {line === undefined ? (
        <p>
          The address <code>{location.hash}</code> is none of this page. <a href="#/">See the sessions</a>
        </p>
      ) : (
        <>
          <p>The command line shows it:</p>
          <CommandLine line={line} />
        </>
      )}
    </div>
  );
}

function commandOf(route: Route): string {
  switch (route.page) {
    case 'session': {
      const { session, seq } = route;
      return seq === undefined
        ? `tape log ${shellWord(session)}`
        : `tape show ${shellWord(`${session}@${seq}`)}`;
    }
    case 'seen':
      return `tape view ${shellWord(`${route.session}@${route.seq}`)}`;
    case 'trace':
      return `tape trace ${shellWord(`${route.session}@${route.seq}`)}`;
    case 'diff':
      return `tape diff ${shellWord(route.a)} ${shellWord(route.b)}`;
    case 'sessions':
      return 'tape sessions';
    default:
      return `tape ${route.page}${route.session === undefined ? '' : ` ${shellWord(route.session)}`}`;
  }
}
