import { Option } from 'commander';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../../governance/settings/index.ts';

/** The flag `--cluster-name`, as of the controller. */
export function clusterNameOption(): Option {
  return new Option(
    '--cluster-name <name>',
    'name of the cluster, and of the namespace with copies of policies',
  ).default(DEFAULT_GOVERNANCE_SETTINGS.clusterName);
}
