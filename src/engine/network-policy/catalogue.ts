import { deepFreeze } from '../../values/index.ts';
import type { Effect, Feature, UsePattern } from './feature.ts';
import type { VersionRange } from './version-range.ts';

export const SUPPORTS = ['Supported', 'Unsupported', 'Partial', 'Unknown'] as const;
type Support = (typeof SUPPORTS)[number];

/** Where a row comes from: read in the code or the documentation of the provider, an issue, or concluded from others. */
export const EVIDENCES = ['Code', 'Documentation', 'Issue', 'Inferred'] as const;
export type Evidence = (typeof EVIDENCES)[number];

/** A setting of the provider that has to have a value. Exactly one of `is`, `not` and `contains` is present. */
export interface SettingRequirement {
  readonly setting: string;
  readonly is?: string;
  readonly not?: string;
  readonly contains?: string;
}

/** How many port entries fit. */
export interface PortLimit {
  readonly entries: number;
  /** `CIDR`: the entries of all rules for an address. `Endpoint`: ports times peers of a pod. */
  readonly per: 'CIDR' | 'Endpoint';
  /** The setting that changes it. */
  readonly setting?: string;
}

/** What happens in some uses. */
interface UseEffect {
  readonly uses: readonly UsePattern[];
  readonly effect: Effect;
}

/** What a provider does with a feature, in a range of versions. */
export interface SupportRow {
  readonly versions: VersionRange;
  readonly support: Support;
  /** What happens where it is not supported. */
  readonly effect?: Effect;
  /** Uses with another effect: the first that fits counts. */
  readonly effects?: readonly UseEffect[];
  /** Supported only with these settings. */
  readonly requires?: readonly SettingRequirement[];
  /** Of `Partial`: the uses that are not supported. All, when absent. */
  readonly when?: readonly UsePattern[];
  /** Of `Partial`: what of the cluster decides whether it is supported. */
  readonly depends?: string;
  readonly limit?: PortLimit;
  /** What to know although it is supported. */
  readonly caution?: string;
  /** The uses that the caution is about. Default: all. */
  readonly cautionWhen?: readonly UsePattern[];
  readonly note?: string;
  readonly evidence: Evidence;
  /** URLs that show it. */
  readonly sources: readonly string[];
  /** The day on which it was checked: `2026-11-21`. */
  readonly checked: string;
}

/** A fault of some versions, beside what rows say: a bug, or what an advisory tells. */
export interface Defect {
  /** `GHSA-fm8w-2m5w-9j7r`, `CVE-2026-56743`. Empty for a bug without an advisory. */
  readonly ids: readonly string[];
  readonly features: readonly Feature[];
  readonly versions: VersionRange;
  /** The uses that it is about. Default: all. */
  readonly when?: readonly UsePattern[];
  /** It happens only with these settings. */
  readonly settings?: readonly SettingRequirement[];
  /** What else decides whether it happens, that nobody sees in a policy. Then it only warns. */
  readonly depends?: string;
  readonly effect: Effect;
  /** What happens, as the end of a sentence that begins with the provider. */
  readonly summary: string;
  readonly evidence: Evidence;
  readonly sources: readonly string[];
  readonly checked: string;
}

export interface ProviderSetting {
  /** The value where it is not set. */
  readonly default: string;
  /** Whether it always has its default. */
  readonly fixed?: boolean;
  /** Where it is found in a cluster. */
  readonly where: string;
}

/** A container by which a pod of a provider is known. Everything that is given must hold. */
export interface AgentPattern {
  readonly container: string;
  /** The last segment of the image's path, which mirrors keep. A star at the end matches any suffix. */
  readonly images?: readonly string[];
  /** The host of the image. */
  readonly registry?: string;
  /** The DaemonSet of the pod. A star at the end matches any suffix. */
  readonly daemonSets?: readonly string[];
  readonly os?: 'linux' | 'windows';
  /** Another container of the pod. */
  readonly beside?: string;
}

/** An object of the provider that has its version, for images without one. */
export interface VersionObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
  readonly name: string;
  /** Where the version is: `spec.calicoVersion`. */
  readonly field: string;
}

/** The version of a provider that is part of the kubelet’s program, or of a distribution with it. */
export interface KubeletVersions {
  readonly kubelet: VersionRange;
  /** The namespace of the pods, by which a distribution is known. */
  readonly namespace?: string;
  /** The lowest version in that range. */
  readonly version: string;
}

/** How a provider is detected in a cluster. */
export interface Detection {
  readonly agents: readonly AgentPattern[];
  /** A part of the version of kubelets with this provider built in. */
  readonly kubelet?: string;
  readonly kubeletVersions?: readonly KubeletVersions[];
  /** Names of images whose tags are versions, with stars for any text before or after. Default: all. */
  readonly images?: readonly string[];
  readonly object?: VersionObject;
  /** Providers whose patterns the pods of this one match, too. */
  readonly replaces?: readonly string[];
  /** The ConfigMap, in the namespace of the pods, whose keys are settings. */
  readonly configMap?: string;
  /** Settings that are arguments of the container. */
  readonly arguments?: readonly string[];
  /** Another container, in the network of its host too, with these arguments. */
  readonly argumentsOf?: string;
  /** Settings that say whether the pod has the container of that name: `present` or `absent`. */
  readonly containers?: readonly string[];
}

type FeatureRows = Readonly<Partial<Record<Feature, readonly SupportRow[]>>>;

/** An implementation of NetworkPolicies, and what it does with each feature. */
export interface Provider {
  readonly name: string;
  /** The name for people. */
  readonly title: string;
  /** The key of its entry in statuses: `cilium.io/agent`. */
  readonly controllerName: string;
  readonly os?: 'linux' | 'windows';
  readonly state: 'Active' | 'Retiring' | 'Abandoned';
  /** The newest version that was examined. Newer minor versions are unknown. Absent: versions do not matter. */
  readonly latest?: string;
  /** The day of the check of each row that names none. */
  readonly checked?: string;
  /** Absent: it is not detected, only declared. */
  readonly detect?: Detection;
  readonly settings: ReadonlyMap<string, ProviderSetting>;
  readonly features: FeatureRows;
  /** Default: none. */
  readonly defects?: readonly Defect[];
}

/** A provider to add, or changes of one; see {@link Catalogue.extended}. */
export interface ProviderExtension
  extends Pick<Provider, 'name' | 'settings' | 'features'>, Partial<Omit<Provider, 'name' | 'settings' | 'features'>> {
  /** The provider whose rows a new provider starts with. */
  readonly inherits?: string;
}

/** Providers by name. Immutable. */
export class Catalogue {
  readonly providers: readonly Provider[];
  readonly #byName: ReadonlyMap<string, Provider>;

  constructor(providers: readonly Provider[]) {
    this.providers = providers.map((provider) => Object.freeze(provider));
    this.#byName = new Map(this.providers.map((provider) => [provider.name, provider]));
    deepFreeze(this.providers.map(({ features, defects }) => ({ features, defects })));
  }

  find(name: string): Provider | undefined {
    return this.#byName.get(name);
  }

  get names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /**
   * This catalogue with providers added, and others changed: each field and each feature of an extension replaces that of
   * the provider with its name, settings are merged. Files of users and NetworkPolicyProvider objects extend in this way.
   */
  extended(extensions: readonly ProviderExtension[]): Catalogue {
    const merged = new Map(this.#byName);
    for (const { inherits, ...extension } of extensions) {
      const { name } = extension;
      const base = merged.get(name) ?? newProvider(name, inherits === undefined ? undefined : merged.get(inherits));
      merged.set(name, {
        ...base,
        ...extension,
        settings: new Map([...base.settings, ...extension.settings]),
        features: { ...base.features, ...extension.features },
      });
    }
    return new Catalogue([...merged.values()]);
  }
}

/** Its features are unknown until rows are added. */
function newProvider(name: string, inherited: Provider | undefined): Provider {
  const { latest, settings = new Map(), features = {}, defects = [] } = inherited ?? {};
  const provider = {
    name,
    title: name,
    controllerName: `${name}/${name}`,
    state: 'Active',
    settings,
    features,
    defects,
  } as const;
  return latest === undefined ? provider : { ...provider, latest };
}
