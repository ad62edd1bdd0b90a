import { Heading } from '../parts/heading.tsx';

/** An address that the page does not have. */
export function Missing() {
  return (
    <div class="sheet">
      <Heading title="No such page" />
      <p>
        The page has no address <code>{location.hash}</code>. <a href="#/">See the sessions</a>
      </p>
    </div>
  );
}
