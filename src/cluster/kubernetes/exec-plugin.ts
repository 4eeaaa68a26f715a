// Exec plugins for credentials (client.authentication.k8s.io, KEP-541).
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject } from '../../resources/index.ts';
import { ClusterError } from '../errors.ts';
import type { ClientCredentials, CredentialSource } from './connection.ts';
import { parseJson } from '../../values/index.ts';

/** Time limit of a plugin, which may call an identity provider. Milliseconds. */
const EXEC_TIMEOUT_MS = 60_000;
/** Time limit of an interactive plugin, which waits for its user. Milliseconds. */
const EXEC_INTERACTIVE_TIMEOUT_MS = 5 * 60_000;
/** A token and a certificate with its chain are some ten thousand bytes. */
const MAX_OUTPUT_BYTES = 1024 ** 2;
/** The end of stderr that an error message shows. */
const MAX_STDERR_BYTES = 4096;
/** Credentials that expire sooner are renewed, so that they last for the request. Milliseconds. */
const EXPIRY_MARGIN_MS = 10_000;

export const EXEC_API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;

/** A plugin's entry in a kubeconfig. */
export interface ExecPluginConfig {
  readonly apiVersion: (typeof EXEC_API_VERSIONS)[number];
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always';
  /** Shown when the program is not installed. */
  readonly installHint: string | undefined;
  /** The cluster's data, for plugins with `provideClusterInfo`. */
  readonly cluster: JsonObject | undefined;
}

export interface ExecPluginOptions {
  /** The plugin's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether the plugin may prompt the user at a terminal. Default: false. */
  readonly interactive?: boolean;
  /** Receives the stderr of an interactive plugin. */
  readonly onStderr?: (text: string) => void;
  /** Default: {@link EXEC_TIMEOUT_MS}, or {@link EXEC_INTERACTIVE_TIMEOUT_MS} when it may prompt. */
  readonly timeoutMs?: number;
  /** Milliseconds since 1970. Default: Date.now. */
  readonly now?: () => number;
}

interface CachedCredentials {
  readonly credentials: ClientCredentials;
  /** Milliseconds since 1970; Infinity if the plugin sets no expiry. */
  readonly expires: number;
}

/** Credentials of an exec plugin, cached until they expire or are rejected. */
export class ExecPlugin implements CredentialSource {
  readonly description: string;
  readonly #config: ExecPluginConfig;
  readonly #options: ExecPluginOptions;
  readonly #now: () => number;
  #cached: CachedCredentials | undefined;
  #running: Promise<CachedCredentials> | undefined;

  constructor(config: ExecPluginConfig, options: ExecPluginOptions) {
    this.#config = config;
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.description = `the credentials of exec plugin "${config.command}"`;
  }

  async current(): Promise<ClientCredentials> {
    if (this.#cached !== undefined && this.#now() < this.#cached.expires - EXPIRY_MARGIN_MS) {
      return this.#cached.credentials;
    }
    // Concurrent callers wait for the same run.
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return (await this.#running).credentials;
  }

  dropRefused(credentials: ClientCredentials): boolean {
    // Another request may have renewed them already.
    if (this.#cached?.credentials === credentials) {
      this.#cached = undefined;
    }
    return true;
  }

  async #run(): Promise<CachedCredentials> {
    const { interactiveMode } = this.#config;
    const interactive = interactiveMode !== 'Never' && this.#options.interactive === true;
    if (interactiveMode === 'Always' && !interactive) {
      throw this.#failure(
        'expected a terminal, because its interactiveMode is Always, got none',
        'run this from a terminal',
      );
    }
    const output = await this.#outputOf(interactive);
    this.#cached = this.#parse(output);
    return this.#cached;
  }

  async #outputOf(interactive: boolean): Promise<string> {
    const { command, args, env, apiVersion, cluster } = this.#config;
    const info = {
      kind: 'ExecCredential',
      apiVersion,
      spec: { interactive, ...(cluster === undefined ? {} : { cluster }) },
    };
    const child = spawn(command, args, {
      env: { ...this.#options.env, ...env, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
      stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
    const timeoutMs = this.#options.timeoutMs ?? (interactive ? EXEC_INTERACTIVE_TIMEOUT_MS : EXEC_TIMEOUT_MS);
    const outcome = await outcomeOf(child, timeoutMs, interactive ? this.#options.onStderr : undefined);
    if (outcome.error !== undefined) {
      const hint = this.#config.installHint;
      throw this.#failure(
        `it does not start (${outcome.error.message})`,
        hint ?? 'install it, or put it on PATH',
        outcome.error,
      );
    }
    if (outcome.tooMuch) {
      throw this.#failure(`expected at most ${MAX_OUTPUT_BYTES} bytes of output, got more`, 'look at what it prints');
    }
    if (outcome.timedOut) {
      throw this.#failure(
        `expected an end within ${timeoutMs} ms, got none${stderrText(outcome.stderr)}`,
        'try it by hand',
      );
    }
    if (outcome.status !== 0) {
      throw this.#failure(
        `expected exit code 0, got ${outcome.status}${stderrText(outcome.stderr)}`,
        'log in again, or try it by hand',
      );
    }
    return outcome.stdout;
  }

  #parse(output: string): CachedCredentials {
    let credential: unknown;
    try {
      credential = parseJson(output);
    } catch {
      throw this.#failure(
        'expected an ExecCredential in JSON on its standard output, got something else',
        'try it by hand',
      );
    }
    const { apiVersion } = this.#config;
    if (
      !isJsonObject(credential) ||
      credential['kind'] !== 'ExecCredential' ||
      credential['apiVersion'] !== apiVersion
    ) {
      const got = isJsonObject(credential)
        ? `${textOf(credential, 'kind') ?? 'an object'} of ${textOf(credential, 'apiVersion') ?? 'no version'}`
        : 'other JSON';
      throw this.#failure(
        `expected an ExecCredential of ${apiVersion}, got ${got}`,
        'set exec.apiVersion to what it speaks',
      );
    }
    const { status } = credential;
    const token = isJsonObject(status) ? textOf(status, 'token') : undefined;
    const cert = isJsonObject(status) ? textOf(status, 'clientCertificateData') : undefined;
    const key = isJsonObject(status) ? textOf(status, 'clientKeyData') : undefined;
    if ((cert === undefined) !== (key === undefined)) {
      throw this.#failure(
        'expected clientCertificateData and clientKeyData together, got one of them',
        'correct the plugin',
      );
    }
    if (token === undefined && cert === undefined) {
      throw this.#failure(
        'expected status.token or status.clientCertificateData, got neither',
        'log in again, or try it by hand',
      );
    }
    const credentials = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(cert === undefined || key === undefined ? {} : { clientCertificate: { cert, key } }),
    };
    return { credentials, expires: this.#expiry(isJsonObject(status) ? status : {}) };
  }

  #expiry(status: JsonObject): number {
    const text = textOf(status, 'expirationTimestamp');
    if (text === undefined) {
      return Infinity;
    }
    const time = Date.parse(text);
    if (Number.isNaN(time)) {
      throw this.#failure(
        `expected a time in status.expirationTimestamp, got ${JSON.stringify(text)}`,
        'correct the plugin',
      );
    }
    return time;
  }

  #failure(what: string, advice: string, cause?: unknown): ClusterError {
    const message = `exec plugin "${this.#config.command}": ${what}; ${advice}`;
    return new ClusterError('credentials-failed', message, cause === undefined ? undefined : { cause });
  }
}

function textOf(object: JsonObject, key: string): string | undefined {
  const value = object[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function stderrText(stderr: string): string {
  const text = stderr.trim();
  return text === '' ? '' : ` (stderr: ${text})`;
}

interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  /** Exit code, or the name of the signal that terminated it. */
  readonly status: number | string;
  readonly timedOut: boolean;
  readonly tooMuch: boolean;
  /** Why it could not start. */
  readonly error: Error | undefined;
}

/** Waits for a program, and terminates it when it takes too long or prints too much. */
function outcomeOf(
  child: ChildProcess,
  timeoutMs: number,
  onStderr: ((text: string) => void) | undefined,
): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const output: Buffer[] = [];
  let bytes = 0;
  let stderr = Buffer.alloc(0);
  let timedOut = false;
  let error: Error | undefined;
  const finish = (status: number | string): void => {
    clearTimeout(timer);
    // Its child processes may still hold the pipes open.
    child.stdout?.destroy();
    child.stderr?.destroy();
    const tooMuch = bytes > MAX_OUTPUT_BYTES;
    resolve({ stdout: Buffer.concat(output).toString(), stderr: stderr.toString(), status, timedOut, tooMuch, error });
  };
  const end = (): void => {
    child.kill('SIGKILL');
    finish('SIGKILL');
  };
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, timeoutMs);
  child.stdout?.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_OUTPUT_BYTES) {
      end();
      return;
    }
    output.push(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = Buffer.concat([stderr, chunk]).subarray(-MAX_STDERR_BYTES);
    onStderr?.(chunk.toString());
  });
  child.once('error', (reason) => {
    error = reason;
    finish('error');
  });
  child.once('close', (code, signal) => finish(code ?? signal ?? 'unknown'));
  return promise;
}
