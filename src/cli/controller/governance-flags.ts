// Governance: the administrator's choices, on a controller and on `start`.
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  DEFAULT_GOVERNANCE_SETTINGS,
  type GovernanceMode,
  type GovernanceSettings,
} from '../../governance/settings/index.ts';
import { usageError } from '../errors.ts';
import { namespaceName, namespaceNames } from '../namespace-names.ts';

export interface GovernanceFlags {
  readonly governance: boolean;
  readonly governanceMode: GovernanceMode;
  readonly clusterName: string;
  readonly governanceNamespaces?: readonly string[];
}

export function addGovernanceFlags(command: Command): Command {
  const { mode, clusterName, exemptNamespaces } = DEFAULT_GOVERNANCE_SETTINGS;
  return command
    .addOption(
      // Charts write the value.
      new Option('--governance [enabled]', 'apply the Policies of Open Cluster Management’s kinds')
        .default(true)
        .preset('true')
        .argParser(isEnabled),
    )
    .option('--no-governance', 'leave them alone')
    .addOption(
      new Option('--governance-mode <mode>', 'apply Policies without a placement to this cluster, or only placed ones')
        .choices(['standalone', 'hub'])
        .default(mode),
    )
    .addOption(
      new Option('--cluster-name <name>', 'name of this cluster, and of the namespace for copies of its Policies')
        .default(clusterName)
        .argParser(namespaceName),
    )
    .addOption(
      new Option(
        '--governance-namespaces <names>',
        `namespaces whose Policies count (default: all but ${exemptNamespaces.join(', ')} and that of Portcullis)`,
      ).argParser(namespaceNames),
    );
}

/**
 * Undefined when governance is off.
 * @param productNamespace the namespace of Portcullis
 * @throws CliError
 */
export function governanceSettings(
  { governance, governanceMode: mode, clusterName, governanceNamespaces: namespaces = [] }: GovernanceFlags,
  productNamespace: string,
): GovernanceSettings | undefined {
  if (!governance) {
    return undefined;
  }
  if (clusterName === productNamespace) {
    throw usageError(
      `--cluster-name ${clusterName} is the namespace of Portcullis`,
      'The namespace of the cluster has copies of Policies only. Choose another name.',
    );
  }
  return {
    mode,
    clusterName,
    exemptNamespaces: [...DEFAULT_GOVERNANCE_SETTINGS.exemptNamespaces, productNamespace],
    namespaces: namespaces.length === 0 ? undefined : namespaces,
  };
}

/** The value of a flag that charts write. */
export function isEnabled(text: string): boolean {
  if (text !== 'true' && text !== 'false') {
    throw new InvalidArgumentError(`expected true or false, got ${JSON.stringify(text)}`);
  }
  return text === 'true';
}
