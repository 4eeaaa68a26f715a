import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { aborted, ObjectCache, type Runnable } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { replaceFiles } from './atomic-folder.ts';
import { dataOf, type Secret, SECRETS } from './secret.ts';

/** The keys of the Secret of a certificate. */
const CERTIFICATE_KEYS: readonly string[] = ['tls.crt', 'tls.key', 'ca.crt'];
/** A warning is logged after waiting this long for a Secret, since a user may have to create it. Milliseconds. */
const WARN_AFTER_MS = 10_000;
/** Delay before files are written again after a failure, such as a full disk. Milliseconds. */
const RETRY_MS = 10_000;

export interface SecretFilesOptions {
  /** A client that may list and watch the Secret. */
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly namespace: string;
  /** `metadata.name` */
  readonly secret: string;
  /** The folder of the files, created if necessary. Must contain nothing else. */
  readonly folder: string;
  /** Keys that become files of the same names, once the Secret has all of them. Default: those of a certificate. */
  readonly keys?: readonly string[];
  /** A message why the content of a Secret is unusable; the files are not changed then. Default: always usable. */
  readonly fault?: (texts: ReadonlyMap<string, string>) => string | undefined;
  readonly log: Logger;
}

/**
 * Copies the keys of a Secret to files in a folder, and replaces all of them at once whenever the Secret changes. The files
 * stay when the Secret is deleted or becomes unusable, and when the process ends.
 */
export class SecretFiles implements Runnable {
  readonly name: string;
  /** Resolves when the files have the current content of the Secret. */
  readonly ready: Promise<void>;
  readonly #options: SecretFilesOptions;
  readonly #log: Logger;
  readonly #written = Promise.withResolvers<void>();
  /** The content of the files, as JSON. */
  #content = '';
  #isCurrent = false;

  constructor(options: SecretFilesOptions) {
    this.#options = options;
    this.name = `files of secret ${options.secret}`;
    this.#log = options.log.child({ secret: options.secret, folder: options.folder });
    this.ready = this.#written.promise;
    this.ready.catch(() => undefined);
  }

  /** Runs until `signal` is aborted; cannot be started again. @throws Error when the first write fails */
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
    let retry: NodeJS.Timeout | undefined;
    const refresh = (): void => {
      clearTimeout(retry);
      try {
        this.#write(cache.get({ namespace, name: secret }));
      } catch (error) {
        this.#log.error({ error: errorText(error) }, 'files of the Secret could not be written');
        failed.reject(error);
        retry = setTimeout(refresh, RETRY_MS).unref();
      }
    };
    const unsubscribe = cache.subscribe(refresh);
    const warning = setTimeout(() => {
      this.#log.warn(
        { keys: this.#keys },
        'still waiting for the Secret: the leading controller creates it, or cert-manager or another issuer',
      );
    }, WARN_AFTER_MS).unref();
    void this.ready.then(
      () => clearTimeout(warning),
      () => undefined,
    );
    const stop = new AbortController();
    const running = cache.start(AbortSignal.any([signal, stop.signal]));
    try {
      await Promise.race([aborted(signal), this.ready, failed.promise]);
      await aborted(signal);
    } finally {
      stop.abort();
      unsubscribe();
      clearTimeout(warning);
      clearTimeout(retry);
      await running;
    }
  }

  /** Whether the files have the content of the Secret: false if it is missing, lacks keys, or is unusable. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  get #keys(): readonly string[] {
    return this.#options.keys ?? CERTIFICATE_KEYS;
  }

  #write(secret: Secret | undefined): void {
    this.#isCurrent = false;
    if (secret === undefined) {
      this.#log.warn('the Secret was deleted; its files stay as they are');
      return;
    }
    const data = dataOf(secret);
    const files = new Map(this.#keys.flatMap((key) => (data[key] ? [[key, data[key]] as const] : [])));
    if (files.size < this.#keys.length) {
      const missing = this.#keys.filter((key) => !files.has(key));
      this.#log.warn({ missing }, 'the Secret lacks keys; its files stay as they are');
      return;
    }
    const reason = this.#options.fault?.(files);
    if (reason !== undefined) {
      this.#log.warn({ reason }, 'the Secret is unusable; its files stay as they are');
      return;
    }
    const content = JSON.stringify([...files]);
    if (content !== this.#content) {
      replaceFiles(this.#options.folder, files);
      this.#content = content;
      this.#written.resolve();
      this.#log.info('files of the Secret were written');
    }
    this.#isCurrent = true;
  }
}
