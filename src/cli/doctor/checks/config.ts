/** The files of the configuration: whether they are readable, and which users may read them. */
import { type Paths, readConfig, readTokens } from '../../config/config.js';
import { judgeFolder, judgePrivate, judgeSecrets, readAccess } from '../access.js';
import { type Check, ok, problem, type Verdict } from '../model.js';

/** Which files. */
export interface ConfigOptions {
	paths: Paths;
	/** Further files with secrets, each in a group with the files that belong to it: a database, a token file. */
	secrets: readonly (readonly string[])[];
	/** The folder of those files; null: no such files. */
	folder: string | null;
}

/** `config.files` and `config.access`. */
export function configChecks(options: ConfigOptions): Check[] {
	return [
		{ name: 'config.files', run: async () => judgeFiles(options.paths) },
		{ name: 'config.access', run: () => lookAtAccess(options) },
	];
}

function judgeFiles(paths: Paths): Verdict {
	try {
		const { profiles } = readConfig(paths);
		readTokens(paths);
		const names = Object.keys(profiles);
		if (names.length === 0) return ok('no profiles are stored: nothing is needed there');
		return ok(`${paths.config} holds ${names.join(', ')}`);
	} catch (error) {
		return problem(
			error instanceof Error ? error.message : String(error),
			'mend the file, or move it away and log in again',
		);
	}
}

async function lookAtAccess({ paths, secrets, folder }: ConfigOptions): Promise<Verdict | Verdict[]> {
	if (process.platform === 'win32') return ok('permissions are those of the user folder');
	const read = async (files: readonly string[]) =>
		(await Promise.all(files.map(readAccess))).filter((access) => access !== null);
	const families = await Promise.all([[paths.credentials], ...secrets].map(read));
	const [own, config, around] = await Promise.all(
		[[paths.folder], [paths.config], folder === null ? [] : [folder]].map(read),
	);
	const complaints = [
		...(own ?? []).map((access) => judgeFolder(access) ?? judgePrivate(access, '700')),
		...(config ?? []).map((access) => judgePrivate(access, '600')),
		...families.map((files) => judgeSecrets(files.filter(({ isFolder }) => !isFolder))),
		...(around ?? []).map(judgeFolder),
	].filter((verdict) => verdict !== null);
	return complaints.length > 0 ? complaints : ok('only their owner may read these files');
}
