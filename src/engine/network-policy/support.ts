import type { ConditionStatus } from '../../resources/index.ts';
import type { Defect, Provider, SettingRequirement, SupportRow } from './catalogue.ts';
import { EFFECTS, isMeant } from './feature.ts';
import type { Effect, Feature, Trait } from './feature.ts';
import { isNewerMinor, leastProviderVersion, parseProviderVersion } from './provider-version.ts';
import type { ProviderVersion } from './provider-version.ts';
import { isAtBoundary, isInRange, reachesBeyond } from './version-range.ts';
import type { VersionRange } from './version-range.ts';

/** A provider as it runs, or as it would run. */
export interface ProviderInstance {
  /** A name of the catalogue. */
  readonly name: string;
  /** As in the tag of its image: `v1.15.4-eksbuild.1`; or the least that it can be: `>=1.9.0`. */
  readonly version?: string;
  /** The values of settings that are known. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Whether all other settings have their defaults. */
  readonly hasOtherDefaults?: boolean;
}

/** Why a feature is supported, or not. Reasons of conditions. */
export type SupportReason =
  /** The provider does what the policy says. */
  | 'Accepted'
  /** This version does not support a feature that the policy uses. */
  | 'FeatureNotSupported'
  /** More port entries than fit. */
  | 'LimitExceeded'
  /** A setting turns the provider off. */
  | 'ProviderDisabled'
  /** The catalogue has no such provider. */
  | 'ProviderNotFound'
  /** The version is not known, and the answer depends on it. */
  | 'ProviderVersionUnknown'
  /** A setting is not known, and the answer depends on it. */
  | 'SettingUnknown'
  /** What else there is in the cluster decides. */
  | 'DependsOnCluster'
  /** Nobody has examined it: a new version, a new field, a row that says so. */
  | 'NotInCatalogue';

/** Whether a provider supports one use of a feature. */
export interface Support {
  readonly status: ConditionStatus;
  readonly reason: SupportReason;
  /** What happens if it does not. */
  readonly effect?: Effect;
  /** What decides, for `SettingUnknown`, `ProviderDisabled`, `DependsOnCluster` and versions. */
  readonly because?: string;
  readonly row?: SupportRow;
  /** The fault that makes it unsupported. */
  readonly defect?: Defect;
}

/** What a provider supports, in one version and with its settings. */
export class ProviderSupport {
  readonly provider: Provider;
  readonly instance: ProviderInstance;
  readonly #version: ProviderVersion | undefined;
  /** The least that the version can be, where it is not known. */
  readonly #least: ProviderVersion | undefined;
  /** The provider and its version, for people. */
  readonly label: string;
  readonly #rows = new Map<Feature, SupportRow | Support>();
  readonly #judgements = new UseTable<Support>();
  readonly #cautions = new UseTable<readonly string[]>();

  constructor(provider: Provider, instance: ProviderInstance) {
    this.provider = provider;
    this.instance = instance;
    const { version } = instance;
    this.#version = version === undefined ? undefined : parseProviderVersion(version);
    this.#least = version === undefined ? undefined : leastProviderVersion(version);
    this.label = version === undefined ? provider.title : `${provider.title} ${version.replace(/^v(?=\d)/, '')}`;
  }

  of(feature: Feature, traits: readonly Trait[]): Support {
    return this.#judgements.get(feature, traits, () => {
      const row = this.row(feature);
      const known = 'status' in row ? row : this.#judged(row, feature, traits);
      return [known, ...this.#faults(feature, traits)].reduce(worseSupport);
    });
  }

  /** What to know about a use although it is supported: sentences. */
  cautions(feature: Feature, traits: readonly Trait[]): readonly string[] {
    return this.#cautions.get(feature, traits, () => this.#cautionsOf(feature, traits));
  }

  #cautionsOf(feature: Feature, traits: readonly Trait[]): readonly string[] {
    const row = this.row(feature);
    const { caution, cautionWhen } = 'status' in row ? {} : row;
    const own = caution === undefined || !isMeant(cautionWhen, traits) ? [] : [`${this.label}: ${caution}`];
    const { defect: named, status } = this.of(feature, traits);
    const others = this.#defects(feature, traits).filter((defect) => defect !== named);
    const isCertain = ({ versions }: Defect): boolean => this.#version !== undefined || versions.text === '*';
    const known = others.filter(isCertain).map((defect) => this.#defectSentence(defect));
    const possible = status === 'True' ? others.filter((defect) => !isCertain(defect)) : [];
    return [...own, ...known, ...(possible.length === 0 ? [] : [this.#possibleSentence(possible)])];
  }

  /** One sentence for all faults of some versions: which of them the provider has, nobody knows without its version. */
  #possibleSentence(defects: readonly Defect[]): string {
    const names = defects.map(({ ids: [id], summary }) => id ?? summary).join(', ');
    return `${this.label} may be a version with known faults, since it is not known which one runs: ${names}`;
  }

  /** The faults that this version may have; of all versions, when it is not known. */
  get defects(): readonly Defect[] {
    return (this.provider.defects ?? []).filter(({ versions }) => this.#mayBeIn(versions));
  }

  #mayBeIn(range: VersionRange): boolean {
    const version = this.#version;
    if (version !== undefined) {
      return isInRange(version, range) || isAtBoundary(version, range);
    }
    return this.#least === undefined || reachesBeyond(this.#least, range);
  }

  /** The row of the version; or why there is none. */
  row(feature: Feature): SupportRow | Support {
    const known = this.#rows.get(feature) ?? this.#findRow(this.provider.features[feature] ?? []);
    this.#rows.set(feature, known);
    return known;
  }

  /** The value of a setting; undefined when it is not known. */
  setting(name: string): string | undefined {
    const declared = this.provider.settings.get(name);
    if (declared?.fixed === true) {
      return declared.default;
    }
    const { settings = {}, hasOtherDefaults = false } = this.instance;
    const known = Object.hasOwn(settings, name) ? settings[name] : undefined;
    return known ?? (hasOtherDefaults ? declared?.default : undefined);
  }

  #findRow(rows: readonly SupportRow[]): SupportRow | Support {
    const version = this.#version;
    if (rows.length === 0) {
      return { status: 'Unknown', reason: 'NotInCatalogue', because: 'the catalogue has no row for it' };
    }
    const { latest = '' } = this.provider;
    const [newest, least] = [parseProviderVersion(latest), version ?? this.#least];
    if (newest !== undefined && least !== undefined && isNewerMinor(least, newest)) {
      const because = `the catalogue ends at ${latest}`;
      return { status: 'Unknown', reason: 'NotInCatalogue', because };
    }
    if (version === undefined) {
      return this.#rowOfAllVersions(rows);
    }
    const row = rows.find(({ versions }) => isInRange(version, versions));
    if (row === undefined) {
      return { status: 'Unknown', reason: 'NotInCatalogue', because: 'the catalogue has no row for this version' };
    }
    return isAtBoundary(version, row.versions) ? precedes(version) : row;
  }

  /** The only row that there can be, since without a version no other can be chosen. */
  #rowOfAllVersions(rows: readonly SupportRow[]): SupportRow | Support {
    const [only, ...others] = rows.filter(({ versions }) => this.#mayBeIn(versions));
    if (only !== undefined && others.length === 0) {
      return only;
    }
    const { version } = this.instance;
    const isText = version !== undefined && this.#least === undefined;
    return unknownVersion(
      isText ? `${JSON.stringify(version.slice(0, 80))} is not a version` : 'it depends on the version',
    );
  }

  #judged(row: SupportRow, feature: Feature, traits: readonly Trait[]): Support {
    const known = row.effects?.find(({ uses }) => isMeant(uses, traits))?.effect ?? row.effect;
    const effect = known === undefined ? {} : { effect: known };
    switch (row.support) {
      case 'Supported':
        return this.#withSettings(row, feature);
      case 'Unsupported':
        return { status: 'False', reason: 'FeatureNotSupported', ...effect, row };
      case 'Unknown':
        return { status: 'Unknown', reason: 'NotInCatalogue', because: becauseOf(row), row };
      case 'Partial':
        if (!isMeant(row.when, traits)) {
          return { status: 'True', reason: 'Accepted', row };
        }
        return row.depends === undefined
          ? { status: 'False', reason: 'FeatureNotSupported', ...effect, row }
          : { status: 'Unknown', reason: 'DependsOnCluster', because: `not if ${row.depends}`, ...effect, row };
      default:
        return row.support satisfies never;
    }
  }

  /** A requirement that the default meets is taken as met: see {@link assumptions}. */
  #withSettings(row: SupportRow, feature: Feature): Support {
    const effect = row.effect === undefined ? {} : { effect: row.effect };
    for (const requirement of row.requires ?? []) {
      const value = this.setting(requirement.setting);
      if (value !== undefined && !isMet(requirement, value)) {
        const reason = feature === 'Enforcement' ? 'ProviderDisabled' : 'FeatureNotSupported';
        const because = `${requirement.setting} is ${JSON.stringify(value.slice(0, 80))}`;
        return { status: 'False', reason, because, ...effect, row };
      }
      if (value === undefined && !isMet(requirement, this.#default(requirement))) {
        const because = `only if ${requirementText(requirement)}, which is not the default`;
        return { status: 'Unknown', reason: 'SettingUnknown', because, ...effect, row };
      }
    }
    return { status: 'True', reason: 'Accepted', row };
  }

  /** The faults that the use certainly has, or that it has in some versions while the version is not known. */
  #faults(feature: Feature, traits: readonly Trait[]): readonly Support[] {
    const certain = this.#defects(feature, traits).filter((defect) => !this.#isOnlyPossible(defect));
    return certain.map((defect): Support => {
      const { effect } = defect;
      const version = this.#version;
      const isKnown = version !== undefined && !isAtBoundary(version, defect.versions);
      return isKnown
        ? { status: 'False', reason: 'FeatureNotSupported', effect, defect, ...this.#assumed(defect) }
        : { ...unknownVersion(`it may be one that ${defectText(defect)}`), effect, defect };
    });
  }

  /** Those of this use, unless a setting rules them out. */
  #defects(feature: Feature, traits: readonly Trait[]): readonly Defect[] {
    return this.defects.filter(
      ({ features, when, settings = [] }) =>
        features.includes(feature) &&
        isMeant(when, traits) &&
        settings.every((one) => isMet(one, this.#known(one)) || this.#isUnknown(one)),
    );
  }

  /** A setting that is not known is taken to have its default. */
  #isOnlyPossible({ depends, settings = [] }: Defect): boolean {
    return depends !== undefined || settings.some((one) => !isMet(one, this.#known(one)));
  }

  #known({ setting }: SettingRequirement): string {
    return this.setting(setting) ?? this.#default({ setting });
  }

  #isUnknown({ setting }: SettingRequirement): boolean {
    return this.setting(setting) === undefined;
  }

  #defectSentence(defect: Defect): string {
    const { settings = [], depends = [] } = defect;
    const [met, unmet] = [true, false].map((is) => settings.filter((one) => isMet(one, this.#known(one)) === is));
    const conditions = [
      ...(unmet ?? []).map((one) => `${requirementText(one)}, which is not the default`),
      depends,
    ].flat();
    const text = `${this.label} ${defectText({ ...defect, settings: met ?? [] })}`;
    return conditions.length === 0 ? text : `${text}, if ${conditions.join(', and ')}`;
  }

  #assumed({ settings = [] }: Defect): { readonly because?: string } {
    const unknown = settings.filter((one) => this.#isUnknown(one)).map(requirementText);
    return unknown.length === 0 ? {} : { because: `${unknown.join(' and ')} by default` };
  }

  /** Requirements of enforcement whose settings are not known, and are taken to have their defaults. */
  get assumptions(): readonly string[] {
    const row = this.row('Enforcement');
    const requires = 'status' in row ? [] : (row.requires ?? []);
    return requires
      .filter((one) => this.setting(one.setting) === undefined && isMet(one, this.#default(one)))
      .map(requirementText);
  }

  #default({ setting }: Pick<SettingRequirement, 'setting'>): string {
    return this.provider.settings.get(setting)?.default ?? '';
  }
}

/** What is known of uses, by feature and traits. Uses share their traits, of which there are few: see {@link sharedTraits}. */
class UseTable<T> {
  readonly #byFeature = new Map<Feature, WeakMap<readonly Trait[], T>>();

  get(feature: Feature, traits: readonly Trait[], compute: () => T): T {
    const known = this.#byFeature.get(feature) ?? new WeakMap<readonly Trait[], T>();
    this.#byFeature.set(feature, known);
    const value = known.get(traits) ?? compute();
    known.set(traits, value);
    return value;
  }
}

/** What happens, and how it is known: `lets in all pods (GHSA-…, versions >=1.19.0 <1.19.5)`. */
export function defectText({ summary, ids, versions, settings = [] }: Defect): string {
  const range = versions.text === '*' ? [] : [`versions ${versions.text}`];
  const facts = [...ids, ...range, ...settings.map(requirementText)];
  return facts.length === 0 ? summary : `${summary} (${facts.join(', ')})`;
}

/** From what is fine to what is not. */
export const SEVERITY: Readonly<Record<ConditionStatus, number>> = { True: 0, Unknown: 1, False: 2 };

/** The status decides, then the effect. The first of equals. */
export function worseSupport(one: Support, other: Support): Support {
  const rank = ({ effect }: Support): number => (effect === undefined ? -1 : EFFECTS.indexOf(effect));
  const difference = SEVERITY[other.status] - SEVERITY[one.status] || rank(other) - rank(one);
  return difference > 0 && other.status !== 'True' ? other : one;
}

function precedes({ numbers }: ProviderVersion): Support {
  return unknownVersion(`it precedes ${numbers.join('.')}, which changes that`);
}

function unknownVersion(because: string): Support {
  return { status: 'Unknown', reason: 'ProviderVersionUnknown', because };
}

/** Lists are joined by commas or by spaces: Cilium's chart does both. */
const LIST_SEPARATORS = /[\s,]+/;

/** How Go reads flags that are true or false. */
const GO_BOOLEANS: ReadonlyMap<string, string> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, 'true'] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, 'false'] as const),
]);

function isMet({ is, not, contains }: SettingRequirement, value: string): boolean {
  if (is !== undefined) {
    return isSameValue(value, is);
  }
  return not === undefined ? value.split(LIST_SEPARATORS).includes(contains ?? '') : !isSameValue(value, not);
}

function isSameValue(one: string, other: string): boolean {
  return one === other || (GO_BOOLEANS.has(one) && GO_BOOLEANS.get(one) === GO_BOOLEANS.get(other));
}

/** `enable-sctp is "true"` */
export function requirementText({ setting, is, not, contains }: SettingRequirement): string {
  if (is !== undefined) {
    return `${setting} is ${JSON.stringify(is)}`;
  }
  return not === undefined
    ? `${setting} contains ${JSON.stringify(contains ?? '')}`
    : `${setting} is not ${JSON.stringify(not)}`;
}

/** The note as the end of a sentence. */
function becauseOf({ note = 'it was not examined' }: SupportRow): string {
  const text = note.replace(/\.$/, '');
  // The first word may be a name.
  return /^[A-Z][a-z]* /.test(text) && !/^[A-Z][a-z]* [A-Z\d]/.test(text)
    ? text[0]?.toLowerCase() + text.slice(1)
    : text;
}
