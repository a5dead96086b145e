# An image of mailctl: `serve` by default, any other command as the arguments of the container. docs/deploying.md
FROM node:24 AS build
WORKDIR /build
# The installed packages depend on these two files alone, so their layer is cached.
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts && npm rebuild esbuild
COPY scripts scripts
COPY src src
COPY bin bin
COPY tsconfig.json ./
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
ENV NODE_ENV=production MAILCTL_DB=/data/mailctl.db
# glibc returns freed memory to the system; by default it keeps memory after large allocations.
ENV MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
COPY --from=build /build/package.json /opt/mailctl/
COPY --from=build /build/bin /opt/mailctl/bin
COPY --from=build /build/dist /opt/mailctl/dist
COPY --from=build /build/node_modules /opt/mailctl/node_modules
RUN ln -s /opt/mailctl/bin/mailctl.js /usr/local/bin/mailctl && install -d -o node -g node -m 700 /data
USER node
VOLUME /data
EXPOSE 8080
# Healthy: the database answers, and its secrets can be read.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:8080/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["mailctl"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
