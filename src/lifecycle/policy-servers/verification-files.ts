// The verification of signatures of a PolicyServer: the ConfigMaps that its spec names, and the files of its processes.
//
// Processes read annotations of their own pod (downward API), not the ConfigMaps: the content changes together with the
// Deployment, only after it was found valid, and a pod that restarts reads what it read before.
import { parseTrustRoot, parseVerification } from '../../modules/index.ts';
import {
  type JsonObject,
  knownKind,
  type KubernetesObject,
  type PolicyServerObject,
  type ResourceType,
} from '../../resources/index.ts';
import { type ObjectCache, Stalled, type SharedCaches, Waiting, type Watch, watch } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { OBJECT_REASONS } from './policy-server-conditions.ts';

/** Most bytes of both texts: API servers allow 256 KiB for all annotations of an object. */
export const MAX_VERIFICATION_BYTES = 128 * 1024;
/** Delay before a missing ConfigMap is looked for again; its creation is also watched. Milliseconds. */
const RETRY_MS = 5 * 60_000;

/** The fields of the spec, in the order of checks. */
const FIELDS = [
  {
    field: 'verificationConfig',
    key: 'verification-config',
    annotation: 'portcullis.dev/verification-config',
    file: 'verification.yml',
    flag: 'verification-path',
    parse: parseVerification,
  },
  {
    field: 'sigstoreTrustConfig',
    key: 'sigstore-trust-config',
    annotation: 'portcullis.dev/sigstore-trust-config',
    file: 'sigstore-trust-config.json',
    flag: 'sigstore-trust-config',
    parse: parseTrustRoot,
  },
] as const;

type Field = (typeof FIELDS)[number]['field'];

/** Valid texts of the ConfigMaps, by field of the spec. */
export type VerificationTexts = Readonly<Partial<Record<Field, string>>>;

type ConfigMap = KubernetesObject & { readonly data?: Readonly<Record<string, string>> };

/** Reads the ConfigMaps of PolicyServers. */
export class VerificationConfigs {
  readonly #configMaps: ObjectCache<ConfigMap>;
  readonly #servers: ObjectCache<PolicyServerObject>;
  readonly #namespace: string;

  /** @param namespace the namespace of Portcullis, with the ConfigMaps */
  constructor(caches: SharedCaches, servers: ObjectCache<PolicyServerObject>, namespace: string) {
    const type = knownKind('v1', 'ConfigMap') as ResourceType<ConfigMap>;
    this.#configMaps = caches.cache(type, { namespace, transform: withVerificationOnly });
    this.#servers = servers;
    this.#namespace = namespace;
  }

  /** Changes of ConfigMaps, by the PolicyServers that name them. */
  watch(): Watch {
    return watch(this.#configMaps, {
      keys: ({ metadata }) =>
        this.#servers
          .list()
          .filter(({ spec }) => FIELDS.some(({ field }) => spec[field] === metadata.name))
          .map((server) => ({ name: server.metadata.name ?? '' })),
    });
  }

  /**
   * The texts for a PolicyServer.
   * @throws Waiting `VerificationConfigNotFound`
   * @throws Stalled `VerificationConfigInvalid`
   */
  of({ spec }: PolicyServerObject): VerificationTexts {
    const texts: Partial<Record<Field, string>> = {};
    for (const { field, key, parse } of FIELDS) {
      const name = spec[field];
      if (name !== undefined && name !== '') {
        const where = `ConfigMap ${this.#namespace}/${name}, key ${key}`;
        const text = this.#text(field, name, key);
        try {
          parse(text, where);
        } catch (error) {
          throw new Stalled(OBJECT_REASONS.verificationInvalid, `spec.${field}: ${errorText(error)}${UNCHANGED}`, {
            cause: error,
          });
        }
        texts[field] = text;
      }
    }
    const bytes = Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    if (bytes > MAX_VERIFICATION_BYTES) {
      const detail = `expected at most ${MAX_VERIFICATION_BYTES} bytes in both ConfigMaps, got ${bytes}`;
      throw new Stalled(
        OBJECT_REASONS.verificationInvalid,
        `spec.verificationConfig and spec.sigstoreTrustConfig are too large: ${detail}${UNCHANGED}`,
      );
    }
    return texts;
  }

  #text(field: Field, name: string, key: string): string {
    const configMap = this.#configMaps.get({ namespace: this.#namespace, name });
    const text = configMap?.data?.[key];
    if (text === undefined) {
      const missing =
        configMap === undefined
          ? `ConfigMap ${this.#namespace}/${name} does not exist`
          : `ConfigMap ${this.#namespace}/${name} has no key ${key}`;
      throw new Waiting(OBJECT_REASONS.verificationNotFound, RETRY_MS, `spec.${field}: ${missing}${UNCHANGED}`);
    }
    return text;
  }
}

const UNCHANGED = '. Nothing is created or changed for this PolicyServer until then';

/** Annotations of pods. */
export function verificationAnnotations(texts: VerificationTexts): Readonly<Record<string, string>> {
  return Object.fromEntries(used(texts).map(({ annotation, text }) => [annotation, text]));
}

/** Arguments of processes. @param folder where the volume is mounted */
export function verificationFlags(texts: VerificationTexts, folder: string): readonly (readonly [string, string])[] {
  return used(texts).map(({ flag, file }) => [flag, `${folder}/${file}`] as const);
}

/** The volume with the files; undefined without any. */
export function verificationVolume(texts: VerificationTexts, name: string): JsonObject | undefined {
  const items = used(texts).map(({ annotation, file }) => ({
    path: file,
    fieldRef: { apiVersion: 'v1', fieldPath: `metadata.annotations['${annotation}']` },
  }));
  return items.length === 0 ? undefined : { name, downwardAPI: { items } };
}

function used(texts: VerificationTexts): readonly ((typeof FIELDS)[number] & { readonly text: string })[] {
  return FIELDS.flatMap((field) => {
    const text = texts[field.field];
    return text === undefined ? [] : [{ ...field, text }];
  });
}

/** Drops other keys, since any ConfigMap of the namespace may have 1 MiB. */
function withVerificationOnly({ apiVersion, kind, metadata, data = {} }: ConfigMap): ConfigMap {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadata;
  const keys: readonly string[] = FIELDS.map(({ key }) => key);
  const kept = Object.entries(data).filter(([key]) => keys.includes(key));
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, data: Object.fromEntries(kept) };
}
