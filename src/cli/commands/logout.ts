import { readConfig, readToken } from '../config/config.js';
import { confirmProtected, spokenOf } from '../config/profiles.js';
import { findProfile } from '../config/target.js';
import { command } from '../frame/command.js';
import { answer } from '../render/columns.js';

export { logout as command };

const logout = command({
	name: 'logout',
	summary: 'forget the token of a profile',
	description:
		'The profile itself stays, and so does the token at the deployment: revoke it there if it leaked.',
	writes: true,
	profiles: true,
	reach: ['profile'],
	columns: answer('profile', 'removed'),
	output: '{"profile", "removed"}',
	exits: [78],
	examples: ['mailctl logout --profile prod'],
	run: async (cx) => {
		const name = spokenOf(cx, undefined);
		const stored = readToken(cx.paths, name);
		// A token may outlive its profile in a file that was edited by hand.
		const profile = stored === null ? findProfile(readConfig(cx.paths), name) : {};
		await confirmProtected(cx, name, readConfig(cx.paths).profiles[name] ?? profile);
		if (cx.dryRun)
			return cx.wouldDo(`forget the token of profile "${name}"`, { logout: name, removed: stored !== null });
		const { removeToken } = await import('../config/config-write.js');
		const removed = stored !== null && (await removeToken(cx.paths, name));
		await cx.out.document(
			{ profile: name, removed },
			removed ? `the token of profile "${name}" is forgotten` : `no token is stored for profile "${name}"`,
		);
		for (const variable of ['MAILCTL_TOKEN', 'MAILCTL_TOKEN_FILE'])
			if (cx.io.env[variable]) await cx.warn(`${variable} is set and is used all the same`);
	},
});
