import { addressOf } from '../route.ts';
import { positions } from './strip.ts';

/** Positions of a session, as a link to the first of them. */
export function Positions({
  session,
  from,
  to,
}: {
  readonly session: string;
  readonly from: number;
  readonly to: number;
}) {
  return <a href={addressOf({ page: 'session', session, seq: from })}>{positions(from, to)}</a>;
}
