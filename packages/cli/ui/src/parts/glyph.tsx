import type { Tone } from '../../../src/page/data.ts';

/** The shape of a state: each is another one, so that colour alone says nothing. */
export type Shape =
  | 'open'
  | 'runs'
  | 'waits'
  | 'cut'
  | 'done'
  | 'merged'
  | 'merged-bad'
  | 'ended'
  | 'put-away';

/** The shape of a state in the words of `tape sessions`. */
export function shapeOf(state: string): Shape {
  if (/^merged, /.test(state)) return 'merged-bad';
  if (/^merged\b/.test(state)) return 'merged';
  if (/^(?:busy|running)\b/.test(state)) return 'runs';
  if (/^waiting\b/.test(state)) return 'waits';
  if (/^(?:interrupted|incomplete|damaged)\b/.test(state)) return 'cut';
  if (/^completed\b/.test(state)) return 'done';
  if (/^(?:failed|aborted|halted|filtered|orphaned|discarded)\b/.test(state)) return 'ended';
  if (/^(?:archived|deleted|purged|destroyed)\b/.test(state)) return 'put-away';
  return 'open';
}

/** The shape around the point 0, 0, with a radius of 4. */
export function ShapeAt({ shape }: { readonly shape: Shape }) {
  switch (shape) {
    case 'open':
      return <circle r="3.5" class="ring" />;
    case 'runs':
      return (
        <>
          <circle r="6" class="halo" />
          <circle r="3.5" class="ring" />
          <circle r="1.5" class="full" />
        </>
      );
    case 'waits':
      return (
        <>
          <circle r="4" class="ring" />
          <path d="M-1.2-1.6V1.6M1.2-1.6V1.6" class="mark" />
        </>
      );
    case 'cut':
      return <circle r="3.75" class="ring" stroke-dasharray="2.4 1.53" />;
    case 'done':
      return (
        <>
          <circle r="4" class="ring" />
          <path d="M-1.8.1-.5 1.5 1.9-1.4" class="mark" />
        </>
      );
    case 'merged':
      return <circle r="4" class="full" />;
    case 'merged-bad':
      return (
        <>
          <circle r="4.25" class="full" />
          <path d="M-1.5-1.5 1.5 1.5M1.5-1.5-1.5 1.5" class="cut-out" />
        </>
      );
    case 'ended':
      return <path d="M-3-3 3 3M3-3-3 3" class="mark" />;
    default:
      return <path d="M-3.5 0H3.5" class="mark" />;
  }
}

/** The state of a session: its shape and its words. */
export function State({
  state,
  tone,
  isBrief = false,
}: {
  readonly state: string;
  readonly tone: Tone;
  readonly isBrief?: boolean;
}) {
  return (
    <span class={`state tone-${tone}`} title={isBrief ? state : undefined}>
      <svg class="glyph" viewBox="-7 -7 14 14" width="14" height="14" aria-hidden="true">
        <ShapeAt shape={shapeOf(state)} />
      </svg>
      <span class={isBrief ? 'unseen' : 'state-words'}>{state}</span>
    </span>
  );
}
