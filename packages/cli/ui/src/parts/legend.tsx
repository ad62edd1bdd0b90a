import { type Shape, ShapeAt } from './glyph.tsx';

const words: readonly (readonly [Shape, string, string])[] = [
  ['open', 'plain', 'open'],
  ['runs', 'open', 'running'],
  ['waits', 'open', 'waiting'],
  ['cut', 'bad', 'interrupted'],
  ['done', 'good', 'completed'],
  ['merged', 'good', 'merged'],
  ['merged-bad', 'bad', 'merged, failed'],
  ['ended', 'bad', 'failed, aborted, discarded'],
  ['put-away', 'plain', 'archived'],
];

/** What the shapes of states, and the lines, stand for. */
export function Legend() {
  return (
    <details class="legend">
      <summary>Legend</summary>
      <ul>
        {words.map(([shape, tone, word]) => (
          <li key={shape} class={`tone-${tone}`}>
            <svg class="glyph" viewBox="-7 -7 14 14" width="14" height="14" aria-hidden="true">
              <ShapeAt shape={shape} />
            </svg>
            <span>{word}</span>
          </li>
        ))}
        <li>
          A lane leaves its parent below, and returns to it above where it was merged. The newest is on top.
        </li>
      </ul>
    </details>
  );
}
