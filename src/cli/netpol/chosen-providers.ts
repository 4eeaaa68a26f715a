// The providers of a command: those that flags name, which begin with what is known of the cluster.
import { type DetectedProviders, ProviderSupport } from '../../engine/network-policy/index.ts';
import { usageError } from '../errors.ts';
import { allProviders, providerOf } from './provider-flags.ts';

/** What flags can choose from. */
export class ChosenProviders {
  readonly #known: DetectedProviders;

  constructor(known: DetectedProviders) {
    this.#known = known;
  }

  /** The providers of the cluster, with their versions and settings. Undefined when none is known. */
  get detected(): readonly ProviderSupport[] | undefined {
    const { instances, catalogue } = this.#known;
    const found = instances.flatMap((instance) => {
      const provider = catalogue.find(instance.name);
      return provider === undefined ? [] : [new ProviderSupport(provider, instance)];
    });
    return found.length === 0 ? undefined : found;
  }

  /** Every provider of the catalogue, in its newest version. */
  get all(): readonly ProviderSupport[] {
    return allProviders(this.#known.catalogue);
  }

  /** The providers of flags: what they do not say is as it is in the cluster. @throws CliError for wrong usage */
  named(specs: readonly string[]): readonly ProviderSupport[] {
    return specs.map((spec) => providerOf(spec, this.#known));
  }

  /**
   * A change of the provider. What flags do not say stays as it is.
   * @param from undefined: the provider of the cluster, of several the one that changes
   * @throws CliError for wrong usage
   */
  change(from: string | undefined, to: string): readonly [before: ProviderSupport, after: ProviderSupport] {
    const before = from === undefined ? this.#changed(to) : providerOf(from, this.#known);
    const { instances, catalogue } = this.#known;
    return [before, providerOf(to, { catalogue, instances: [before.instance, ...instances] })];
  }

  #changed(to: string): ProviderSupport {
    const detected = this.detected ?? [];
    const [name = ''] = to.split(/[@,]/);
    const same = detected.find(({ provider }) => provider.name === name);
    const [only, ...others] = detected;
    const found = same ?? (others.length === 0 ? only : undefined);
    if (found === undefined) {
      const names = detected.map(({ provider }) => provider.name).join(', ');
      throw usageError(
        names === ''
          ? 'expected --provider: no provider of a cluster is known'
          : `expected --provider: the cluster has ${names}`,
        'As in: --provider cilium@1.15.4 --to calico@3.28',
      );
    }
    return found;
  }
}
