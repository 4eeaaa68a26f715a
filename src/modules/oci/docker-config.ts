// Credentials for registries, from Docker's config file (https://docs.docker.com/reference/cli/docker/login/), which is also the
// content of image pull secrets, and from credential helpers.
import { spawn } from 'node:child_process';

import { FileError, fileProblem, readWholeFile } from '../../files/index.ts';
import { isJsonObject, type JsonObject, own, parseJson, textOf, valueAt } from '../../values/index.ts';
import { ModuleError, systemCode } from '../reference/errors.ts';
import { isBearerToken } from '../http/authorization.ts';

/** What a registry, or its token service, accepts as proof of identity. */
export type RegistryCredentials =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  /** An OAuth 2 refresh token. */
  | { readonly kind: 'refresh-token'; readonly token: string }
  /** A token for the registry itself. */
  | { readonly kind: 'bearer'; readonly token: string };

/** Docker Hub's key in config files. */
const DOCKER_HUB_KEY = 'https://index.docker.io/v1/';
/** Largest config file: a Secret holds 1 MiB. Bytes. */
const MAX_CONFIG_BYTES = 1024 * 1024;
/** Time for a credential helper, which may refresh a token of a cloud. Milliseconds. */
const HELPER_TIMEOUT_MS = 10_000;
/** Largest answer of a credential helper: tokens have a few KiB. Bytes. */
const MAX_HELPER_BYTES = 64 * 1024;
const HELPER_NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
/** The user name by which credential helpers mark a refresh token. */
const TOKEN_USER = '<token>';

/**
 * The credentials for a repository; undefined if the file has none. Read for each pull, so a changed file takes effect at once.
 * The longest key that is a prefix of `host/repository` counts, as for image pull secrets.
 * @param path of a Docker config file; a missing file has no credentials
 * @throws ModuleError `credentials-invalid`
 */
export async function credentialsFor(
  path: string,
  host: string,
  repository: string,
  signal: AbortSignal,
): Promise<RegistryCredentials | undefined> {
  const config = await readConfig(path);
  if (config === undefined) {
    return undefined;
  }
  const helper = helperFor(config, host);
  if (helper !== undefined) {
    return await fromHelper(helper, host === 'docker.io' ? DOCKER_HUB_KEY : host, signal);
  }
  const auths = own(config, 'auths');
  const entry = isJsonObject(auths) ? longestMatch(auths, `${host}/${repository}`) : undefined;
  return entry === undefined ? undefined : fromEntry(entry, path);
}

async function readConfig(path: string): Promise<JsonObject | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readWholeFile(path, MAX_CONFIG_BYTES);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') {
      return undefined;
    }
    const why = error instanceof FileError ? fileProblem(error) : (systemCode(error) ?? 'unknown error');
    throw invalid(path, `it cannot be read (${why})`, error);
  }
  let config: unknown;
  try {
    config = parseJson(bytes.toString('utf8'));
  } catch {
    // The parser's message may quote credentials.
    throw invalid(path, 'it is not JSON');
  }
  if (!isJsonObject(config)) {
    throw invalid(path, 'expected a mapping');
  }
  return config;
}

function helperFor(config: JsonObject, host: string): string | undefined {
  const name = textOf(valueAt(config, 'credHelpers', host)) || textOf(own(config, 'credsStore')) || undefined;
  if (name !== undefined && !HELPER_NAME.test(name)) {
    throw new ModuleError(
      'credentials-invalid',
      'the Docker config file names a credential helper with a malformed name',
    );
  }
  return name;
}

function longestMatch(auths: JsonObject, target: string): JsonObject | undefined {
  let best: { readonly length: number; readonly entry: JsonObject } | undefined;
  for (const [key, entry] of Object.entries(auths)) {
    const place = placeOf(key);
    const matches = target === place || target.startsWith(`${place}/`);
    if (matches && isJsonObject(entry) && place.length > (best?.length ?? 0)) {
      best = { length: place.length, entry };
    }
  }
  return best?.entry;
}

/** The host, and the path if there is one, of a key such as `https://host/v1/` or `host/path`. */
function placeOf(key: string): string {
  if (key === DOCKER_HUB_KEY) {
    return 'docker.io';
  }
  return key
    .replace(/^https?:\/\//, '')
    .replace(/\/v[12]\/?$/, '')
    .replace(/\/+$/, '');
}

function fromEntry(entry: JsonObject, path: string): RegistryCredentials | undefined {
  const refresh = textOf(own(entry, 'identitytoken'));
  if (refresh !== '') {
    return { kind: 'refresh-token', token: refresh };
  }
  const bearer = textOf(own(entry, 'registrytoken'));
  if (bearer !== '') {
    if (!isBearerToken(bearer)) {
      throw invalid(path, 'a registrytoken has a character that no token has, such as a line break');
    }
    return { kind: 'bearer', token: bearer };
  }
  const username = textOf(own(entry, 'username'));
  const password = textOf(own(entry, 'password'));
  if (username !== '' || password !== '') {
    return { kind: 'password', username, password };
  }
  const pair = Buffer.from(textOf(own(entry, 'auth')), 'base64').toString('utf8');
  if (pair === '') {
    return undefined;
  }
  const colon = pair.indexOf(':');
  if (colon === -1) {
    throw invalid(path, 'an entry "auth" is malformed: expected user:password in base64');
  }
  return { kind: 'password', username: pair.slice(0, colon), password: pair.slice(colon + 1).replace(/\0+$/, '') };
}

/** Runs `docker-credential-NAME get` with the host as input (https://github.com/docker/docker-credential-helpers). */
async function fromHelper(name: string, host: string, signal: AbortSignal): Promise<RegistryCredentials | undefined> {
  const command = `docker-credential-${name}`;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(HELPER_TIMEOUT_MS)]);
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const child = spawn(command, ['get'], { stdio: ['pipe', 'pipe', 'ignore'], signal: limit });
  const chunks: Buffer[] = [];
  let received = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    received += chunk.length;
    if (received > MAX_HELPER_BYTES) {
      child.kill();
    } else {
      chunks.push(chunk);
    }
  });
  child.once('error', reject).once('close', resolve);
  child.stdin.on('error', () => undefined).end(host);
  let code: number | null;
  try {
    code = await promise;
  } catch (error) {
    signal.throwIfAborted();
    throw new ModuleError(
      'credentials-invalid',
      `the credential helper ${command} of the Docker config file could not be run (${systemCode(error) ?? 'unknown error'}): install it, or remove it from the file`,
      { cause: error },
    );
  }
  const text = Buffer.concat(chunks).toString('utf8');
  if (code !== 0) {
    if (text.includes('credentials not found')) {
      return undefined;
    }
    throw helperFailed(command, `it ended with ${code === null ? 'a signal' : `code ${code}`}`);
  }
  let answer: unknown;
  try {
    answer = parseJson(text);
  } catch {
    answer = undefined;
  }
  if (!isJsonObject(answer) || textOf(own(answer, 'Secret')) === '') {
    throw helperFailed(command, 'expected JSON with Username and Secret');
  }
  const username = textOf(own(answer, 'Username'));
  const secret = textOf(own(answer, 'Secret'));
  return username === TOKEN_USER
    ? { kind: 'refresh-token', token: secret }
    : { kind: 'password', username, password: secret };
}

function helperFailed(command: string, problem: string): ModuleError {
  return new ModuleError('credentials-invalid', `the credential helper ${command} gave no credentials: ${problem}`);
}

function invalid(path: string, problem: string, cause?: unknown): ModuleError {
  return new ModuleError('credentials-invalid', `the Docker config file ${path} cannot be used: ${problem}`, { cause });
}
