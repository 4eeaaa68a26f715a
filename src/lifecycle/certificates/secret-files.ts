import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { aborted, ObjectCache, type Runnable } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { replaceFiles } from './atomic-folder.ts';
import { dataOf, type Secret, SECRETS } from './secret.ts';

/** What a Secret of a certificate has, and is waited for. */
const CERTIFICATE_KEYS: readonly string[] = ['tls.crt', 'tls.key', 'ca.crt'];
/** Who waits for a Secret longer than this says so, for somebody may have to make it. Milliseconds. */
const PATIENCE_MS = 10_000;
/** When files that could not be written are tried again: there may be room by then. Milliseconds. */
const RETRY_MS = 10_000;

export interface SecretFilesOptions {
  /** Seen with the right to list and watch that Secret. */
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly namespace: string;
  /** `metadata.name` */
  readonly secret: string;
  /** Where the files are; made when it is missing. Nothing else should be in it. */
  readonly folder: string;
  /** Keys that become files, each of its name. They are written when all are there. Default: those of a certificate. */
  readonly keys?: readonly string[];
  /** Why the texts of a Secret are of no use: then the files stay as they are. Default: they always are. */
  readonly fault?: (texts: ReadonlyMap<string, string>) => string | undefined;
  readonly log: Logger;
}

/**
 * Keeps the keys of a Secret as files in a folder, for what watches files: all are replaced at once, whenever the Secret
 * changes. They stay when the Secret goes or is of no use any more, and when the process ends.
 */
export class SecretFiles implements Runnable {
  readonly name: string;
  /** Resolves when the files are there, as the Secret is now. */
  readonly ready: Promise<void>;
  readonly #options: SecretFilesOptions;
  readonly #log: Logger;
  readonly #written = Promise.withResolvers<void>();
  #known = '';
  #isCurrent = false;

  constructor(options: SecretFilesOptions) {
    this.#options = options;
    this.name = `files of secret ${options.secret}`;
    this.#log = options.log.child({ secret: options.secret, folder: options.folder });
    this.ready = this.#written.promise;
    this.ready.catch(() => undefined);
  }

  /** Runs until `signal` is aborted; once. @throws Error when files cannot be written at first */
  async start(signal: AbortSignal): Promise<void> {
    const { cluster, namespace, secret, log } = this.#options;
    const cache = new ObjectCache<Secret>({
      cluster,
      type: SECRETS,
      namespace,
      fieldSelector: `metadata.name=${secret}`,
      log,
    });
    const failed = Promise.withResolvers<never>();
    let again: NodeJS.Timeout | undefined;
    const look = (): void => {
      clearTimeout(again);
      try {
        this.#write(cache.get({ namespace, name: secret }));
      } catch (error) {
        this.#log.error({ error: errorText(error) }, 'the files of a secret could not be written');
        failed.reject(error);
        // Those that were there go on meanwhile.
        again = setTimeout(look, RETRY_MS).unref();
      }
    };
    const end = cache.subscribe(look);
    const patience = setTimeout(() => {
      this.#log.warn(
        { keys: this.#keys },
        'still waiting for a secret: the controller that leads makes it, or cert-manager, or whoever keeps certificates',
      );
    }, PATIENCE_MS).unref();
    void this.ready.then(
      () => clearTimeout(patience),
      () => undefined,
    );
    const stop = new AbortController();
    const running = cache.start(AbortSignal.any([signal, stop.signal]));
    try {
      await Promise.race([aborted(signal), this.ready, failed.promise]);
      await aborted(signal);
    } finally {
      stop.abort();
      end();
      clearTimeout(patience);
      clearTimeout(again);
      await running;
    }
  }

  /** Whether the files are what the Secret holds: not where it is missing, lacks keys, or is of no use. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  get #keys(): readonly string[] {
    return this.#options.keys ?? CERTIFICATE_KEYS;
  }

  #write(secret: Secret | undefined): void {
    this.#isCurrent = false;
    if (secret === undefined) {
      this.#log.warn('a secret was deleted; its files stay as they are');
      return;
    }
    const data = dataOf(secret);
    const files = new Map(this.#keys.flatMap((key) => (data[key] ? [[key, data[key]] as const] : [])));
    if (files.size < this.#keys.length) {
      const missing = this.#keys.filter((key) => !files.has(key));
      this.#log.warn({ missing }, 'a secret lacks keys; files stay as they are');
      return;
    }
    const reason = this.#options.fault?.(files);
    if (reason !== undefined) {
      this.#log.warn({ reason }, 'a secret is of no use; files stay as they are');
      return;
    }
    const known = JSON.stringify([...files]);
    if (known !== this.#known) {
      replaceFiles(this.#options.folder, files);
      this.#known = known;
      this.#written.resolve();
      this.#log.info('the files of a secret were written');
    }
    this.#isCurrent = true;
  }
}
