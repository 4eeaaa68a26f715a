// Checks module references of policies, with the messages of src/modules.
import { fileURLToPath } from 'node:url';
import { nearestKey } from '../../values/index.ts';
import {
  assertTenantFile,
  assertTenantHost,
  assertTenantModule,
  type BuiltinName,
  isBuiltin,
  ModuleError,
  type ModuleReference,
  parseBuiltin,
  parseReference,
  redactUrl,
} from '../../modules/index.ts';
import { forbidden, invalid } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

export interface ModuleScope {
  /** Whether the policy is namespaced. */
  readonly isNamespaced: boolean;
  /** Base URL of `file://./…`: a folder, with a slash at the end. Undefined: such references are rejected. */
  readonly modulesUrl: URL | undefined;
  /** Hosts that modules of namespaced policies may come from wherever they are. Undefined: not known, so none is refused. */
  readonly tenantHosts: readonly string[] | undefined;
  /** The modules that namespaced policies may use besides builtin ones. Undefined: not known, so none is refused. */
  readonly tenantModules: readonly string[] | undefined;
}

const SCHEMES = ['file', 'http', 'https', 'registry', 'builtin'];
/** Characters of a reference that a message quotes. */
const MAX_SHOWN_CHARACTERS = 200;

/** @returns the name of the builtin module, if the reference is to one */
export function checkModule(
  module: string,
  field: string,
  scope: ModuleScope,
  findings: Findings,
): BuiltinName | undefined {
  if (isBuiltin(module)) {
    return checkBuiltin(module, field, findings);
  }
  const { isNamespaced, modulesUrl } = scope;
  const isRelative = module.startsWith('file://./');
  try {
    const reference = parseReference(
      isRelative && modulesUrl !== undefined ? new URL(module.slice('file://'.length), modulesUrl).href : module,
    );
    if (isNamespaced) {
      checkSource(reference, field, scope, findings);
    }
  } catch (error) {
    if (!(error instanceof ModuleError)) {
      throw error;
    }
    findings.reject('module-reference', invalid(field, shown(module), error.message + schemeHint(module)));
  }
  return undefined;
}

function checkBuiltin(module: string, field: string, findings: Findings): BuiltinName | undefined {
  try {
    return parseBuiltin(module);
  } catch (error) {
    if (!(error instanceof ModuleError)) {
      throw error;
    }
    findings.reject('module-builtin', invalid(field, shown(module), error.message));
    return undefined;
  }
}

/** Namespaced policies must not name files of the policy server, or addresses that only it can reach (SSRF). */
function checkSource(
  reference: ModuleReference,
  field: string,
  { modulesUrl, tenantHosts, tenantModules }: ModuleScope,
  findings: Findings,
): void {
  try {
    if (tenantModules !== undefined) {
      assertTenantModule(reference, tenantModules);
    }
    if (reference.kind === 'file') {
      assertTenantFile(reference, modulesUrl && fileURLToPath(modulesUrl));
    } else {
      assertTenantHost(
        reference.kind === 'http' ? reference.url : new URL(`https://${reference.host}`),
        tenantHosts ?? [],
      );
    }
  } catch (error) {
    if (!(error instanceof ModuleError)) {
      throw error;
    }
    if (reference.kind !== 'file' && tenantHosts === undefined && tenantModules === undefined) {
      findings.warn('module-source', field, error.message);
    } else {
      findings.reject('module-source', forbidden(field, error.message));
    }
  }
}

function schemeHint(module: string): string {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):\/\//i.exec(module)?.[1] ?? '';
  const nearest = nearestKey(scheme, SCHEMES);
  return scheme === '' || nearest === undefined || SCHEMES.includes(scheme.toLowerCase())
    ? ''
    : `. Did you mean ${nearest}:${nearest === 'builtin' ? '' : '//'}?`;
}

/** A reference for messages, without passwords and signed queries. */
function shown(module: string): string {
  const text = /\?|@(?!sha\d+:[^@]*$)/i.test(module) ? redactUrl(module) : module;
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}
