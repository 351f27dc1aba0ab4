module example.test/seeded/other

go 1.25.0
