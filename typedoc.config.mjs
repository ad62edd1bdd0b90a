import { readFileSync } from 'node:fs';
import { ReflectionKind } from 'typedoc';
import { MarkdownTheme, MarkdownThemeContext } from 'typedoc-plugin-markdown';

/** Entry points that no promise covers. */
const unpromised = ['./internal', './crash-point', './package.json'];

/** The sources of the promised entry points of a package. */
function entryPoints(name) {
  const { exports } = JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8'));
  return Object.entries(exports)
    .filter(([path]) => !unpromised.includes(path))
    .map(([, conditions]) => `packages/${name}/${conditions['@tapedeck/source'].slice(2)}`);
}

/** Names the parameters that are taken apart where they are declared, and shows a member only where it is declared. */
function brief(app) {
  app.renderer.defineTheme('brief', BriefTheme);
  app.on('bootstrapEnd', () => app.options.setValue('theme', 'brief'));
  app.converter.on('resolveEnd', ({ project }) => {
    for (const parameter of project.getReflectionsByKind(ReflectionKind.Parameter))
      if (parameter.name === '__namedParameters') parameter.name = 'options';
    for (const member of project.getReflectionsByKind(ReflectionKind.ClassMember))
      if (member.inheritedFrom?.reflection !== undefined) project.removeReflection(member);
  });
}

/** Leaves out what the signature of a function says already: its return type, and the type that a member is of. */
class BriefTheme extends MarkdownTheme {
  getRenderContext(page) {
    const context = new MarkdownThemeContext(this, page, this.application.options);
    context.partials = { ...context.partials, signatureReturns: () => '', inheritance: () => '' };
    return context;
  }
}

export default {
  name: 'API reference',
  tsconfig: 'tsconfig.api.json',
  entryPoints: ['tape', 'graph', 'runtime', 'cli'].flatMap(entryPoints),
  plugin: ['typedoc-plugin-markdown', brief],
  router: 'module',
  out: 'docs/api',
  excludeScopesInPaths: true,
  readme: 'none',
  // `pnpm build` checks the types.
  skipErrorChecking: true,
  disableSources: true,
  excludeInternal: true,
  excludeExternals: true,
  groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
  hideGenerator: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  // The headings of a page can be the same, and then TypeDoc numbers them otherwise than GitHub.
  useHTMLAnchors: true,
  classPropertiesFormat: 'table',
  expandParameters: true,
  expandObjects: true,
  parametersFormat: 'none',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
};
