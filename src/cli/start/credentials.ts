// Who may use the cluster of `start`: its user, and the controller, the policy server and the auditor, each with a token and a kubeconfig of
// its own.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type StaticToken, type UserInfo, writeKubeconfig } from '../../apiserver/index.ts';
import { AUDITOR_USER, CONTROLLER_USER, POLICY_SERVER_USER } from './access.ts';
import { parseJson } from '../../values/index.ts';
import { credentialFiles, TOKENS_FILE } from './data-folder.ts';

/** Length of tokens: twice the 128 bits that cannot be guessed. Bytes. */
const TOKEN_BYTES = 32;
const ADMIN_USER: UserInfo = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };
const USERS = {
  user: ADMIN_USER,
  controller: CONTROLLER_USER,
  policyServer: POLICY_SERVER_USER,
  auditor: AUDITOR_USER,
} as const;

type Tokens = Readonly<Record<keyof typeof USERS, string>>;

/** The tokens of this run of `start`: those of its first API server, so that clients of that one can go on with the next. */
export function ensureTokens(dataDir: string): Tokens {
  const file = join(dataDir, TOKENS_FILE);
  if (existsSync(file)) {
    // Written below.
    return parseJson(readFileSync(file, 'utf8')) as Tokens;
  }
  const token = (): string => randomBytes(TOKEN_BYTES).toString('base64url');
  const tokens: Tokens = { user: token(), controller: token(), policyServer: token(), auditor: token() };
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(file, JSON.stringify(tokens), { mode: 0o600 });
  return tokens;
}

/** The users of these tokens, for the API server. */
export function staticTokens(tokens: Tokens): readonly StaticToken[] {
  return [
    { token: tokens.user, user: USERS.user },
    { token: tokens.controller, user: USERS.controller },
    { token: tokens.policyServer, user: USERS.policyServer },
    { token: tokens.auditor, user: USERS.auditor },
  ];
}

/** Writes a kubeconfig for each of them. */
export async function writeKubeconfigs(
  dataDir: string,
  tokens: Tokens,
  cluster: { readonly server: string; readonly ca: string },
): Promise<void> {
  const files = credentialFiles(dataDir);
  await writeKubeconfig(files.user, { ...cluster, token: tokens.user });
  await writeKubeconfig(files.controller, { ...cluster, token: tokens.controller });
  await writeKubeconfig(files.policyServer, { ...cluster, token: tokens.policyServer });
  await writeKubeconfig(files.auditor, { ...cluster, token: tokens.auditor });
}
