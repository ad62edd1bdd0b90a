import { lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { safeLink, withCharacters } from './safe-link.ts';
import { Wide } from './wide.tsx';

/** How deep lists and quotes are drawn; what is deeper is shown as it was written. */
const depthMax = 12;

/**
 * A text of a tape as Markdown. Its tokens become elements one by one: no HTML of the text is ever made an element, no image is
 * loaded, and a link leads to a page or a person alone, and says where.
 */
export function Markdown({ text }: { readonly text: string }) {
  const tokens = useMemo(() => tokensOf(text), [text]);
  return (
    <div class="markdown" dir="auto">
      {tokens === undefined ? <p class="plain">{text}</p> : <Blocks tokens={tokens} depth={0} />}
    </div>
  );
}

function tokensOf(text: string): readonly Token[] | undefined {
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    // It is nested deeper than can be read.
    return undefined;
  }
}

interface Inside {
  readonly tokens: readonly Token[];
  readonly depth: number;
}

function Blocks({ tokens, depth }: Inside) {
  return (
    <>
      {tokens.map((token, i) => (
        <Block key={i} token={token} depth={depth} />
      ))}
    </>
  );
}

function Block({ token, depth }: { readonly token: Token; readonly depth: number }) {
  if (depth > depthMax) return <p class="plain">{token.raw}</p>;
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'hr':
      return <hr />;
    case 'code':
      return <CodeBlock {...(token as Tokens.Code)} />;
    case 'heading':
      return (
        <p class={`title title-${(token as Tokens.Heading).depth}`}>
          <Line tokens={inside(token)} depth={depth + 1} />
        </p>
      );
    case 'blockquote':
      return (
        <blockquote>
          <Blocks tokens={inside(token)} depth={depth + 1} />
        </blockquote>
      );
    case 'list':
      return <List list={token as Tokens.List} depth={depth} />;
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth} />;
    case 'html':
      return <p class="plain">{token.raw.trimEnd()}</p>;
    default:
      return (
        <p>
          <Line tokens={[token]} depth={depth} />
        </p>
      );
  }
}

function CodeBlock({ text, lang = '', raw }: Pick<Tokens.Code, 'text' | 'lang' | 'raw'>) {
  return (
    <figure class="code">
      {lang !== '' && <figcaption>{lang.slice(0, 40)}</figcaption>}
      <pre>
        <code>{text === '' ? raw : text}</code>
      </pre>
    </figure>
  );
}

function List({ list, depth }: { readonly list: Tokens.List; readonly depth: number }) {
  const items = list.items.map((item, i) => (
    <li key={i}>
      {item.task && (item.checked === true ? '☑ ' : '☐ ')}
      {item.tokens.map((token, at) =>
        token.type === 'text' ? (
          <Line key={at} tokens={[token]} depth={depth + 1} />
        ) : token.type === 'checkbox' ? null : (
          <Block key={at} token={token} depth={depth + 1} />
        ),
      )}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table: { header, rows }, depth }: { readonly table: Tokens.Table; readonly depth: number }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: 'th' | 'td') =>
    row.map(({ tokens }, i) => (
      <Cell key={i}>
        <Line tokens={tokens} depth={depth + 1} />
      </Cell>
    ));
  return (
    <Wide label="Table">
      <table>
        <thead>
          <tr>{cells(header, 'th')}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

function Line({ tokens, depth }: Inside) {
  return (
    <>
      {tokens.map((token, i) => (
        <Phrase key={i} token={token} depth={depth} />
      ))}
    </>
  );
}

function Phrase({ token, depth }: { readonly token: Token; readonly depth: number }) {
  if (depth > depthMax) return <>{token.raw}</>;
  const line = (): ComponentChildren => <Line tokens={inside(token)} depth={depth + 1} />;
  switch (token.type) {
    case 'br':
      return <br />;
    case 'strong':
      return <strong>{line()}</strong>;
    case 'em':
      return <em>{line()}</em>;
    case 'del':
      return <del>{line()}</del>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'link':
      return <Link link={token as Tokens.Link}>{line()}</Link>;
    case 'image':
      return <Image {...(token as Tokens.Image)} />;
    case 'html':
      return <>{token.raw}</>;
    case 'text':
    case 'paragraph':
      if (inside(token).length > 0) return <>{line()}</>;
      return <>{withCharacters((token as Tokens.Text).text)}</>;
    case 'escape':
      return <>{(token as Tokens.Escape).text}</>;
    default:
      return <>{token.raw}</>;
  }
}

/** A link says where it leads, unless its text is that. One that may not be a link is shown as a text. */
function Link({ link, children }: { readonly link: Tokens.Link; readonly children: ComponentChildren }) {
  const { text, href } = link;
  const address = safeLink(href);
  const isAddress = text === href || `mailto:${text}` === href || text === href.replace(/^https?:\/\//, '');
  const shown = isAddress ? null : <span class="address"> ({address ?? href})</span>;
  if (address === undefined)
    return (
      <span class="no-link">
        {children}
        {shown}
      </span>
    );
  return (
    <>
      <a href={address} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
      {shown}
    </>
  );
}

function Image({ text, href }: Pick<Tokens.Image, 'text' | 'href'>) {
  return (
    <span class="image">
      image{text !== '' && `: ${text}`} <span class="address">({href})</span>
    </span>
  );
}

function inside(token: Token): readonly Token[] {
  return 'tokens' in token && Array.isArray(token.tokens) ? token.tokens : [];
}
