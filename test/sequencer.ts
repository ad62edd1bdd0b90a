import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { sized } from './support/size.ts';

/** Files that take long, though they are short, or wait: what ran before, if anything, may have been another size. */
const long =
  /\/(?:contract\/sqlite-(?:file|later)|docs\/(?:api|guide|man|verb-examples)|e2e\/(?:cli\.(?:memory|ssh-remotes|server-home|ui-crowd|worker)|packages|ui\.(?:hostile|pages))|integration\/(?:boss\.(?:engine|kills)|runtime\.(?:crashes|delegate-kills|hostile-answers)|tape\.crashes)|unit\/(?:mutants|runtime\.audit-forged|tape\.(?:bundle-random|legal-histories|model-commands|simulator|usage)|views\.(?:histories|random)))\.test\.ts$/;

/**
 * The first long files of `unit` load one package: they are under way while the others wait for the modules of the rest.
 * At full size one of `e2e` plays the guide, which takes two minutes: other files have to be left for the other workers.
 */
const projects = sized(
  ['unit', 'lanes', 'later', 'integration', 'e2e'],
  ['unit', 'lanes', 'e2e', 'integration', 'later'],
  ['unit', 'lanes', 'e2e', 'integration', 'later'],
);

/** Runs the long files of a project first, so that in the end no worker is alone with one. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const byProject = Map.groupBy(sorted, ({ project }) => project.name);
    return [...byProject]
      .toSorted(([a], [b]) => projects.indexOf(a) - projects.indexOf(b))
      .flatMap(([, ofOne]) => [
        ...ofOne.filter(({ moduleId }) => long.test(moduleId)),
        ...ofOne.filter(({ moduleId }) => !long.test(moduleId)),
      ]);
  }
}
