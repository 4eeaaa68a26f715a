// The providers that count: those that are detected, with what administrators say about them.
import { createHash } from 'node:crypto';
import {
  type Catalogue,
  type Provider,
  type ProviderInstance,
  ProviderSupport,
  readProvider,
} from '../engine/network-policy/index.ts';
import { compareStrings } from '../go/index.ts';
import type { KubernetesObject, NetworkPolicyProvider } from '../resources/index.ts';
import { fieldPathText } from '../engine/index.ts';
import { isReporting, nextReportingChange, type Reporter, reportersOf } from './reporters.ts';
import { type ClusterObjects, detectProviders, type DetectedProvider } from './detect-providers.ts';

export interface ProviderObjects extends ClusterObjects {
  readonly declared: readonly NetworkPolicyProvider[];
}

/** A provider that counts. */
export interface PresentProvider {
  readonly instance: ProviderInstance;
  /** Undefined when the catalogue does not have the provider. */
  readonly support: ProviderSupport | undefined;
  readonly controllerName: string;
  readonly os: 'linux' | 'windows' | undefined;
  readonly detected: DetectedProvider | undefined;
}

/** What is known of the providers of a cluster at one time. */
export interface ClusterProviders {
  readonly catalogue: Catalogue;
  /** Of the catalogue with its extensions. */
  readonly digest: string;
  /** Sorted by name; at most {@link MAX_PROVIDERS}. */
  readonly providers: readonly PresentProvider[];
  /** All detected providers, whether they count or not. */
  readonly detected: readonly DetectedProvider[];
  /** Mistakes in the capabilities of NetworkPolicyProviders, by their names. */
  readonly mistakes: ReadonlyMap<string, string>;
  /** The reporters by controllerName. */
  readonly reporters: ReadonlyMap<string, Reporter>;
  /** Those that say that they run: their entries count. */
  readonly reporting: ReadonlyMap<string, Reporter>;
  /** Nodes that run without an agent of an enforcing provider. */
  readonly unguardedNodes: number;
  /** When a new node counts as unguarded, or a reporter no longer counts. Milliseconds since 1970. */
  readonly nextChange: number | undefined;
}

/** Half of the entries that a status has room for; the others are for entries of other writers. */
const MAX_PROVIDERS = 8;
/** Time for the agent of a new node to start, so that no status changes because of each new node. Milliseconds. */
const NODE_GRACE_MS = 5 * 60_000;
/** Characters of the mistakes of a NetworkPolicyProvider. */
const MAX_MISTAKES = 1024;

/** The providers that count. A function of the objects, whatever their order. @param now milliseconds since 1970 */
export function clusterProviders(objects: ProviderObjects, builtin: Catalogue, now: number): ClusterProviders {
  const declared = [...objects.declared].sort((one, other) => compareStrings(nameOf(one), nameOf(other)));
  const { catalogue, mistakes } = extend(builtin, declared);
  const detected = detectProviders(objects, catalogue);
  const byName = new Map(declared.map((object) => [nameOf(object), object]));
  const reporters = reportersOf(declared);
  const reporting = [...reporters.values()].filter((reporter) => isReporting(reporter, now));
  const present = withoutCovered(
    presentNames(detected, declared, reporting).map((name) =>
      presentProvider(
        name,
        detected.find((one) => one.name === name),
        byName.get(name),
        catalogue,
      ),
    ),
    byName,
  );
  const providers = present
    .filter(({ controllerName }, index) => present.findIndex((one) => one.controllerName === controllerName) === index)
    .slice(0, MAX_PROVIDERS);
  return {
    catalogue,
    digest: digestOf(catalogue),
    providers,
    detected,
    mistakes,
    reporters,
    reporting: new Map(reporting.map((reporter) => [reporter.controllerName, reporter])),
    ...withChanges(
      unguarded(providers, objects.nodes, now),
      [...reporters.values()].flatMap((reporter) => nextReportingChange(reporter, now) ?? []),
    ),
  };
}

/** With the first of the changes. */
function withChanges<Part extends Pick<ClusterProviders, 'nextChange'>>(part: Part, times: readonly number[]): Part {
  const all = [...times, ...(part.nextChange === undefined ? [] : [part.nextChange])];
  return { ...part, nextChange: all.length === 0 ? undefined : Math.min(...all) };
}

function nameOf({ metadata }: KubernetesObject): string {
  return metadata.name ?? '';
}

/** The catalogue with the capabilities that NetworkPolicyProviders declare. Those with mistakes do not count. */
function extend(
  builtin: Catalogue,
  declared: readonly NetworkPolicyProvider[],
): Pick<ClusterProviders, 'catalogue' | 'mistakes'> {
  const mistakes = new Map<string, string>();
  const catalogue = declared.reduce((known, object) => {
    const { capabilities } = object.spec;
    if (capabilities === undefined) {
      return known;
    }
    const name = nameOf(object);
    const faults: string[] = [];
    const extension = readProvider({ ...capabilities, name }, known, ({ path, key, message }) =>
      faults.push([`spec.capabilities.${fieldPathText(path) || (key ?? '')}`, message].join(': ')),
    );
    if (faults.length > 0) {
      mistakes.set(name, faults.join('; ').slice(0, MAX_MISTAKES));
      return known;
    }
    return known.extended([extension]);
  }, builtin);
  return { catalogue, mistakes };
}

function presentNames(
  detected: readonly DetectedProvider[],
  declared: readonly NetworkPolicyProvider[],
  reporting: readonly Reporter[],
): readonly string[] {
  const named = (presence: string): readonly string[] =>
    declared.filter(({ spec }) => spec.presence === presence).map(nameOf);
  const absent = named('Absent');
  const names = new Set([
    ...detected.map(({ name }) => name),
    ...named('Present'),
    ...reporting.map(({ provider }) => provider),
  ]);
  return [...names].filter((name) => !absent.includes(name)).toSorted(compareStrings);
}

function presentProvider(
  name: string,
  detected: DetectedProvider | undefined,
  object: NetworkPolicyProvider | undefined,
  catalogue: Catalogue,
): PresentProvider {
  const version = object?.spec.version ?? detected?.version;
  const settings = { ...detected?.settings, ...object?.spec.settings };
  const instance = { name, settings, ...(version === undefined ? {} : { version }) };
  const provider = catalogue.find(name);
  return {
    instance,
    support: provider && new ProviderSupport(provider, instance),
    controllerName: object?.spec.reporter?.controllerName ?? provider?.controllerName ?? `portcullis.dev/${name}`,
    os: provider?.os,
    detected,
  };
}

/** Leaves out what enforces nothing where another provider enforces policies on all of its nodes: plugins are chained. */
function withoutCovered(
  providers: readonly PresentProvider[],
  declared: ReadonlyMap<string, NetworkPolicyProvider>,
): readonly PresentProvider[] {
  const enforced = new Set(providers.filter(isEnforcing).flatMap(({ detected }) => detected?.nodes ?? []));
  return providers.filter((provider) => {
    const nodes = provider.detected?.nodes ?? [];
    const isCovered = nodes.length > 0 && nodes.every((node) => enforced.has(node));
    return isEnforcing(provider) || !isCovered || declared.get(provider.instance.name)?.spec.presence === 'Present';
  });
}

/** Whether it is not known to enforce nothing. */
function isEnforcing({ support }: PresentProvider): boolean {
  return support?.of('Enforcement', []).status !== 'False';
}

/** Nodes without an agent. Not known where a provider is declared, and not detected. */
function unguarded(
  providers: readonly PresentProvider[],
  nodes: readonly KubernetesObject[],
  now: number,
): Pick<ClusterProviders, 'unguardedNodes' | 'nextChange'> {
  const enforcing = providers.filter(isEnforcing);
  if (enforcing.length === 0 || enforcing.some(({ detected }) => detected === undefined)) {
    return { unguardedNodes: 0, nextChange: undefined };
  }
  const guarded = new Set(enforcing.flatMap(({ detected }) => detected?.nodes ?? []));
  const ends = nodes.filter((node) => !guarded.has(nameOf(node))).map((node) => createdAt(node) + NODE_GRACE_MS);
  const pending = ends.filter((end) => end > now);
  return {
    unguardedNodes: ends.length - pending.length,
    nextChange: pending.length === 0 ? undefined : Math.min(...pending),
  };
}

function createdAt({ metadata }: KubernetesObject): number {
  const time = Date.parse(metadata.creationTimestamp ?? '');
  return Number.isNaN(time) ? 0 : time;
}

/** Hexadecimal digits of a digest: a catalogue is to be told from its predecessor, not protected. */
const DIGEST_LENGTH = 12;
const digests = new WeakMap<Catalogue, string>();

function digestOf(catalogue: Catalogue): string {
  const known = digests.get(catalogue);
  if (known !== undefined) {
    return known;
  }
  const plain = catalogue.providers.map((provider: Provider) => ({ ...provider, settings: [...provider.settings] }));
  const digest = createHash('sha256').update(JSON.stringify(plain)).digest('hex').slice(0, DIGEST_LENGTH);
  digests.set(catalogue, digest);
  return digest;
}
