import { Heading } from '../parts/heading.tsx';

/** An address that is none of this page. */
export function Missing() {
  return (
    <div class="sheet">
      <Heading title="No such page" />
      <p>
        The address <code>{location.hash}</code> is none of this page. <a href="#/">See the sessions</a>
      </p>
    </div>
  );
}
