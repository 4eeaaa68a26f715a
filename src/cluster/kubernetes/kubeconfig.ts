import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { JsonObject, JsonValue } from '../../resources/index.ts';
import { ClusterError } from '../errors.ts';
import { errorText } from '../../values/index.ts';
import type { ConfigSection } from './config-section.ts';
import type { Connection, ClientCredentials, CredentialSource, ImpersonatedUser } from './connection.ts';
import { fixedCredentials, impersonating } from './connection.ts';
import { EXEC_API_VERSIONS, ExecPlugin } from './exec-plugin.ts';
import type { ExecPluginConfig, ExecPluginOptions } from './exec-plugin.ts';
import type { ClusterAccess } from './in-cluster.ts';
import { CachedCredentials } from './cached-credentials.ts';
import { kubeconfigPaths, readKubeconfigs } from './kubeconfig-files.ts';
import type { Kubeconfig } from './kubeconfig-files.ts';
import { bearerOfFile, TOKEN_FILE_MAX_AGE_MS } from './token-file.ts';

export interface KubeconfigOptions {
  /**
   * Files, merged as kubectl does. Default: those that `KUBECONFIG` lists, of which some may be missing, or else
   * `~/.kube/config`.
   */
  readonly paths?: readonly string[];
  /** Default: the current context. */
  readonly context?: string;
  /** `KUBECONFIG` and `HOME` are read; exec plugins inherit all of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether an exec plugin may prompt the user at a terminal. Default: false. */
  readonly interactive?: boolean;
  /** Receives the stderr of an interactive exec plugin. */
  readonly onStderr?: (text: string) => void;
}

/**
 * Loads the cluster and user of a kubeconfig's context.
 * @throws ClusterError `kubeconfig-missing` without a file; `kubeconfig-invalid`, with file, field, expected and got,
 * for errors in the context, its cluster and its user. Other entries are not validated.
 */
export async function loadKubeconfig(options: KubeconfigOptions): Promise<ClusterAccess> {
  const config = await readKubeconfigs(kubeconfigPaths(options.paths, options.env), options.paths !== undefined);
  const name = options.context ?? config.currentContext;
  const context = contextOf(config, name);
  const cluster = entryOf(config.clusters, context, 'cluster', 'clusters');
  const origin = `context ${JSON.stringify(context.name)} of ${context.section.file}`;
  const connection = await connectionOf(cluster, origin);
  const user = context.section.has('user') ? entryOf(config.users, context, 'user', 'users') : undefined;
  const credentials = user === undefined ? undefined : await credentialsOf(user, cluster, options);
  return {
    connection: { ...connection, ...(credentials === undefined ? {} : { credentials }) },
    context: context.name,
    namespace: context.section.text('namespace') ?? 'default',
  };
}

interface NamedSection {
  readonly name: string;
  readonly section: ConfigSection;
}

function contextOf(config: Kubeconfig, name: string | undefined): NamedSection {
  const files = config.files.join(', ');
  const known = names(config.contexts);
  if (name === undefined || name === '') {
    throw new ClusterError(
      'kubeconfig-invalid',
      config.contexts.size === 0
        ? `kubeconfig ${files}: expected contexts, got none; is this the right file?`
        : `kubeconfig ${files}: current-context: expected the name of a context, got none; choose one of ${known}`,
    );
  }
  const section = config.contexts.get(name);
  if (section === undefined) {
    throw new ClusterError(
      'kubeconfig-invalid',
      `kubeconfig ${files}: expected a context named ${JSON.stringify(name)}, got none; there are ${known}`,
    );
  }
  return { name, section };
}

/** The cluster or user of a context. */
function entryOf(
  entries: ReadonlyMap<string, ConfigSection>,
  context: NamedSection,
  key: 'cluster' | 'user',
  list: string,
): ConfigSection {
  const name = context.section.requiredText(key, `name one of ${list}: ${names(entries)}`);
  const entry = entries.get(name);
  if (entry === undefined) {
    const expected = `the name of an entry of ${list}, got ${JSON.stringify(name)}`;
    throw context.section.wrong(key, expected, `there are ${names(entries)}`);
  }
  return entry;
}

function names(entries: ReadonlyMap<string, unknown>): string {
  return entries.size === 0 ? 'none' : [...entries.keys()].map((name) => JSON.stringify(name)).join(', ');
}

async function connectionOf(cluster: ConfigSection, origin: string): Promise<Connection> {
  const server = cluster.requiredText('server', 'write the address of the API server, such as https://127.0.0.1:6443');
  const url = URL.parse(server);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw cluster.wrong('server', `an address with https://, got ${JSON.stringify(server)}`, 'correct it');
  }
  if (cluster.has('proxy-url')) {
    throw cluster.wrong(
      'proxy-url',
      'nothing, got a proxy',
      'proxies are not supported: reach the cluster directly, or through a tunnel',
    );
  }
  const ca = await cluster.pem('certificate-authority', 'CERTIFICATE');
  const insecureSkipTlsVerify = cluster.flag('insecure-skip-tls-verify');
  if (insecureSkipTlsVerify && ca !== undefined) {
    const expected = 'nothing beside a certificate authority, got true';
    throw cluster.wrong('insecure-skip-tls-verify', expected, 'remove one of the two');
  }
  checkPem(cluster, 'certificate-authority', { ca });
  const tlsServerName = cluster.text('tls-server-name');
  return {
    server,
    origin,
    ...(ca === undefined ? {} : { ca }),
    ...(insecureSkipTlsVerify ? { insecureSkipTlsVerify } : {}),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
  };
}

/** Validates a PEM at load: TLS would fail at the first connection, without naming the field. */
function checkPem(
  section: ConfigSection,
  key: string,
  parts: { ca?: string | undefined; cert?: string; key?: string },
): void {
  try {
    // TLS silently ignores authorities that it cannot read.
    parts.ca
      ?.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g)
      ?.forEach((pem) => new X509Certificate(pem));
    createSecureContext(parts);
  } catch (error) {
    const message = errorText(error);
    throw section.wrong(
      key,
      `what TLS can use, got something else (${message})`,
      'a certificate and its key must belong together',
      error,
    );
  }
}

async function credentialsOf(
  user: ConfigSection,
  cluster: ConfigSection,
  options: KubeconfigOptions,
): Promise<CredentialSource | undefined> {
  refuseUnsupported(user);
  const impersonate = impersonationOf(user);
  const exec = user.section('exec');
  if (exec !== undefined) {
    const plugin = new ExecPlugin(await execConfig(exec, cluster), pluginOptions(options));
    return impersonate === undefined ? plugin : impersonating(plugin, impersonate);
  }
  const parts: ClientCredentials = {
    ...(await clientCertificateOf(user)),
    ...authorizationOf(user),
    ...(impersonate === undefined ? {} : { impersonate }),
  };
  const tokenFile = user.filePath('tokenFile');
  if (tokenFile !== undefined) {
    const read = async (): Promise<ClientCredentials> => ({ ...parts, authorization: await bearerOfFile(tokenFile) });
    return new CachedCredentials(`the token in ${tokenFile}`, read, TOKEN_FILE_MAX_AGE_MS);
  }
  if (user.has('client-certificate')) {
    // Renewed certificates are written to the same files.
    const read = async (): Promise<ClientCredentials> => ({ ...parts, ...(await clientCertificateOf(user)) });
    return new CachedCredentials(`the certificate of ${user.path}`, read, TOKEN_FILE_MAX_AGE_MS);
  }
  if (Object.keys(parts).length === 0) {
    return undefined;
  }
  const what = parts.authorization === undefined ? 'the certificate' : user.has('token') ? 'the token' : 'the password';
  return fixedCredentials(parts, `${what} of ${user.path}`);
}

function refuseUnsupported(user: ConfigSection): void {
  if (user.has('auth-provider')) {
    throw user.wrong(
      'auth-provider',
      'an exec plugin or a token, got an auth provider',
      'Kubernetes removed those in 1.26: use the exec plugin of your provider',
    );
  }
  const ways = [
    ['token', user.has('token') || user.has('tokenFile')],
    ['username', user.has('username') || user.has('password')],
    ['exec', user.has('exec')],
  ] as const;
  const given = ways.filter(([, isGiven]) => isGiven).map(([name]) => name);
  if (given.length > 1) {
    throw user.wrong(given[1] ?? '', `one authentication method, got ${given.join(' and ')}`, 'remove all but one');
  }
}

function authorizationOf(user: ConfigSection): ClientCredentials {
  const token = user.text('token');
  if (token !== undefined) {
    if (/[^\x21-\x7e]/.test(token)) {
      throw user.wrong(
        'token',
        'a token, got other characters than one has',
        'copy it again, without spaces and line breaks',
      );
    }
    return { authorization: `Bearer ${token}` };
  }
  const username = user.text('username');
  if (username === undefined) {
    return {};
  }
  const pair = Buffer.from(`${username}:${user.text('password') ?? ''}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

async function clientCertificateOf(user: ConfigSection): Promise<ClientCredentials> {
  const cert = await user.pem('client-certificate', 'CERTIFICATE');
  const key = await user.pem('client-key', 'PRIVATE KEY');
  if (cert === undefined && key === undefined) {
    return {};
  }
  if (cert === undefined) {
    throw user.wrong('client-certificate', 'the certificate that client-key belongs to, got none', 'add it');
  }
  if (key === undefined) {
    throw user.wrong('client-key', 'the key that client-certificate belongs to, got none', 'add it');
  }
  checkPem(user, 'client-certificate', { cert, key });
  return { clientCertificate: { cert, key } };
}

function impersonationOf(user: ConfigSection): ImpersonatedUser | undefined {
  const name = user.text('as');
  const uid = user.text('as-uid');
  const extra = user.section('as-user-extra');
  if (name === undefined) {
    return undefined;
  }
  return {
    user: name,
    ...(uid === undefined ? {} : { uid }),
    groups: user.texts('as-groups'),
    ...(extra === undefined ? {} : { extra: Object.fromEntries(extra.keys().map((key) => [key, extra.texts(key)])) }),
  };
}

async function execConfig(exec: ConfigSection, cluster: ConfigSection): Promise<ExecPluginConfig> {
  const version = exec.requiredText('apiVersion', `write one of ${EXEC_API_VERSIONS.join(', ')}`);
  const apiVersion = EXEC_API_VERSIONS.find((known) => known === version);
  if (apiVersion === undefined) {
    const advice = 'ask for a newer version of the plugin (v1alpha1 was removed in Kubernetes 1.24)';
    throw exec.wrong('apiVersion', `one of ${EXEC_API_VERSIONS.join(', ')}, got ${JSON.stringify(version)}`, advice);
  }
  const mode = exec.text('interactiveMode') ?? (apiVersion.endsWith('v1') ? undefined : 'IfAvailable');
  if (mode !== 'Never' && mode !== 'IfAvailable' && mode !== 'Always') {
    const got = mode === undefined ? 'nothing, which v1 does not allow' : JSON.stringify(mode);
    throw exec.wrong('interactiveMode', `Never, IfAvailable or Always, got ${got}`, 'write IfAvailable when in doubt');
  }
  const command = exec.requiredText('command', 'write the program to run');
  return {
    apiVersion,
    // A path is relative to the kubeconfig; a bare name is looked up on PATH.
    command: /[/\\]/.test(command) ? (exec.filePath('command') ?? command) : command,
    args: exec.texts('args'),
    env: Object.fromEntries(
      exec.list('env').map((entry) => [entry.requiredText('name', 'name the variable'), entry.text('value') ?? '']),
    ),
    interactiveMode: mode,
    installHint: exec.text('installHint'),
    cluster: exec.flag('provideClusterInfo') ? await clusterInfo(cluster) : undefined,
  };
}

/** The cluster's data for a plugin (`client.authentication.k8s.io` Cluster). */
async function clusterInfo(cluster: ConfigSection): Promise<JsonObject> {
  const ca = await cluster.pem('certificate-authority', 'CERTIFICATE');
  const name = cluster.text('tls-server-name');
  const extension = cluster
    .list('extensions')
    .find((entry) => entry.text('name') === 'client.authentication.k8s.io/exec')
    ?.raw('extension');
  return {
    server: cluster.text('server') ?? '',
    ...(name === undefined ? {} : { 'tls-server-name': name }),
    ...(cluster.flag('insecure-skip-tls-verify') ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    config: (extension ?? null) as JsonValue,
  };
}

function pluginOptions({ env, interactive, onStderr }: KubeconfigOptions): ExecPluginOptions {
  return {
    env,
    ...(interactive === undefined ? {} : { interactive }),
    ...(onStderr === undefined ? {} : { onStderr }),
  };
}
