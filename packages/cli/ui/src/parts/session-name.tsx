/**
 * The name of a session. That of a child begins with the name of its parent, which is shown faintly, and is cut first where
 * there is no room.
 */
export function SessionName({ session, isChild }: { readonly session: string; readonly isChild: boolean }) {
  const marks = ['.', '/', ':'].map((mark) => session.lastIndexOf(mark, session.length - 2));
  const cut = isChild ? Math.max(...marks) : -1;
  return (
    <span class="session-name" title={session}>
      {cut > 0 && <span class="of-parent">{session.slice(0, cut + 1)}</span>}
      <span class="own">{session.slice(cut + 1)}</span>
    </span>
  );
}

/** The kind of a session, unless it is a usual one. */
export function Kind({ kind }: { readonly kind: string }) {
  return kind === 'session' || kind === 'subagent' ? null : <span class="chip">{kind}</span>;
}
