import type { FieldProblem } from '../values/field-problem.ts';
import { readFields } from '../values/field-problem.ts';
import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { nearestKey } from '../../values/index.ts';
import { builtinCatalogue } from './builtin-catalogue.ts';
import type { Catalogue } from './catalogue.ts';
import { readProvider } from './read-catalogue.ts';
import type { ProviderInstance } from './support.ts';

/** Settings of `builtin:network-policy-support`. */
export interface NetworkPolicySettings {
  /** Whether policies that a provider does not support are rejected. Otherwise they are admitted with warnings. */
  readonly deny: boolean;
  /** The providers of the cluster. Undefined: those that are detected. */
  readonly providers: readonly ProviderInstance[] | undefined;
  /** The catalogue, with the providers of the settings. */
  readonly catalogue: Catalogue;
}

export type ParsedNetworkPolicySettings =
  | { readonly settings: NetworkPolicySettings; readonly problems?: undefined }
  | { readonly settings?: undefined; readonly problems: readonly FieldProblem[] };

/** Providers of a cluster: one for each node pool and migration, with room. */
const MAX_PROVIDERS = 16;

/** Parses settings. Returns either settings, or at least one mistake. Never throws. */
export function parseNetworkPolicySettings(json: unknown): ParsedNetworkPolicySettings {
  const problems: FieldProblem[] = [];
  const root = readFields(json ?? {}, problems);
  root.knownKeys(['deny', 'providers', 'catalogue']);
  const deny = root.boolean('deny') ?? false;
  const catalogue = readExtensions(root);
  const providers = readInstances(root, catalogue);
  return problems.length > 0 ? { problems } : { settings: { deny, providers, catalogue } };
}

/** `catalogue`: providers in the format of catalogue files. */
function readExtensions(root: FieldReader): Catalogue {
  return root
    .each('catalogue')
    .reduce(
      (known, { path }, index) =>
        known.extended([
          readProvider(root.list('catalogue')?.[index], known, (fault) =>
            root.report({ ...fault, path: [...path, ...fault.path] }),
          ),
        ]),
      builtinCatalogue(),
    );
}

function readInstances(root: FieldReader, catalogue: Catalogue): readonly ProviderInstance[] | undefined {
  if (!root.has('providers')) {
    return undefined;
  }
  const entries = root.each('providers');
  if (entries.length > MAX_PROVIDERS) {
    root.fault('providers', `expected at most ${MAX_PROVIDERS} providers, got ${entries.length}`);
  }
  return entries.map((fields) => readInstance(fields, catalogue));
}

function readInstance(fields: FieldReader, catalogue: Catalogue): ProviderInstance {
  fields.knownKeys(['name', 'version', 'settings']);
  const name = fields.requiredText('name');
  const provider = catalogue.find(name);
  if (provider === undefined && name !== '') {
    fields.fault('name', `expected a provider of the catalogue, got ${describeValue(name)}${hintAt(name, catalogue)}`);
  }
  const version = fields.someText('version');
  const given = fields.inside('settings');
  given?.knownKeys([...(provider?.settings.keys() ?? [])], { owner: `settings of ${name}` });
  const settings = (given?.keys ?? []).flatMap((key) => {
    const value = given?.text(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    name,
    ...(version === undefined ? {} : { version }),
    ...(given === undefined ? {} : { settings: Object.fromEntries(settings) }),
  };
}

function hintAt(name: string, { names }: Catalogue): string {
  const nearest = nearestKey(name, names);
  return nearest === undefined ? `: known are ${names.toSorted().join(', ')}` : `: did you mean ${nearest}?`;
}
