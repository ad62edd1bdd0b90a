import type { CallPart, Cut, Part, WaitingCall } from '../../../src/page/data.ts';
import { CommandLine, Commands } from '../parts/command.tsx';
import { Markdown } from '../parts/markdown.tsx';
import { counted, grouped } from '../parts/numbers.tsx';
import { addressOf } from '../route.ts';
import { Fold } from './fold.tsx';

/** What parts of an item are drawn with. */
interface PartOptions {
  readonly session: string;
  /** Names what is folded, as long as the page is open. */
  readonly id: string;
  readonly waiting: readonly WaitingCall[];
}

/** A part of a message. */
export function PartOf({ part, ...options }: PartOptions & { readonly part: Part }) {
  switch (part.type) {
    case 'text':
      return (
        <>
          <Markdown text={part.text} />
          <CutText cut={part.cut} shown={part.text.length} />
        </>
      );
    case 'reasoning':
      return (
        <Fold id={options.id} class="reasoning" summary={<Summary word="Reasoning" text={part.text} />}>
          <Markdown text={part.text} />
          <CutText cut={part.cut} shown={part.text.length} />
        </Fold>
      );
    case 'call':
      return <Call part={part} {...options} />;
    case 'output':
      return (
        <Fold
          id={options.id}
          class={`call is-${part.state}`}
          summary={
            <Summary word={part.tool === undefined ? 'Output' : `Output of ${part.tool}`} text={part.text} />
          }
        >
          <Block text={part.text} cut={part.cut} />
        </Fold>
      );
    case 'state':
      return (
        <Fold id={options.id} class="anchor-state" summary={<Summary word="State" text={part.text} />}>
          <Block text={part.text} cut={part.cut} />
        </Fold>
      );
    case 'file':
      return (
        <p class="file">
          <span class="chip">{part.mediaType}</span> {part.name}
          {part.bytes !== undefined && <span class="soft"> {grouped(part.bytes)} bytes</span>}
        </p>
      );
    case 'gone':
      return <p class="soft">{goneWords[part.why]}</p>;
    default:
      return (
        <p class="cut">
          {counted(part.parts, 'more part')} <CommandLine line={part.line} />
        </p>
      );
  }
}

const goneWords = {
  redacted: 'Its content was erased.',
  absent: 'A bundle did not bring its content.',
  damaged: 'Its content is damaged: what is stored cannot be read.',
};

const words: Readonly<Record<CallPart['state'], string>> = {
  done: 'done',
  failed: 'failed',
  denied: 'denied',
  waiting: 'no result yet',
  gone: 'result erased, or not here',
};

const marks: Readonly<Record<CallPart['state'], string>> = {
  done: 'M3 8.5 6.5 12 13 4.5',
  failed: 'M4 4 12 12M12 4 4 12',
  denied: 'M4 8h8',
  waiting: 'M6 4v8M10 4v8',
  gone: 'M3 8h2M7 8h2M11 8h2',
};

/** A call, folded, with its result; open, with what to do, while it waits for a person. */
function Call({ part, session, id, waiting }: PartOptions & { readonly part: CallPart }) {
  const wait = waiting.find(
    (one) =>
      one.call === part.call || one.call === `${session}/${part.call}` || one.call.endsWith(`/${part.call}`),
  );
  const isWaiting = part.state === 'waiting';
  return (
    <Fold
      id={id}
      class={`call is-${part.state}`}
      isOpen={isWaiting && wait !== undefined}
      summary={
        <span class="summary">
          <svg class="mark-of" viewBox="0 0 16 16" width="13" height="13" aria-hidden="true">
            <path d={marks[part.state]} />
          </svg>
          <code class="brief">{part.brief}</code>
          <span class={part.state === 'done' ? 'unseen' : 'call-state'}>
            {isWaiting && wait !== undefined ? wait.what : words[part.state]}
          </span>
        </span>
      }
    >
      {isWaiting && wait !== undefined && (
        <div class="waits">
          {wait.claims.length > 0 && <p class="soft">It would do: {wait.claims.join(', ')}</p>}
          <Commands commands={wait.commands} />
        </div>
      )}
      {part.input !== '' && <Block name="Arguments" text={part.input} cut={part.cut} />}
      {part.output !== undefined && (
        <Block
          name="Result"
          text={part.output}
          cut={part.outputCut}
          {...(part.outputSeq !== undefined && {
            address: addressOf({ page: 'session', session, seq: part.outputSeq }),
            seq: part.outputSeq,
          })}
        />
      )}
    </Fold>
  );
}

interface BlockOptions {
  readonly text: string;
  readonly name?: string;
  readonly cut: Cut | undefined;
  readonly address?: string;
  readonly seq?: number;
}

function Block({ name, text, cut, address, seq }: BlockOptions) {
  return (
    <div class="block">
      {name !== undefined && (
        <p class="block-name">
          {name}
          {address !== undefined && <a href={address}>@{seq}</a>}
        </p>
      )}
      <pre>{text === '' ? <span class="faint">(empty)</span> : text}</pre>
      <CutText cut={cut} shown={text.length} />
    </div>
  );
}

function CutText({ cut, shown }: { readonly cut: Cut | undefined; readonly shown: number }) {
  if (cut === undefined) return null;
  return (
    <p class="cut">
      <span>
        The first {grouped(shown)} of {grouped(cut.chars)} characters.
      </span>
      <CommandLine line={cut.line} />
    </p>
  );
}

function Summary({ word, text }: { readonly word: string; readonly text: string }) {
  return (
    <span class="summary">
      <span class="word">{word}</span>
      <span class="glimpse">{text.slice(0, 200).replace(/\s+/g, ' ').trim()}</span>
    </span>
  );
}
